"""Frames of pandas, polars and pyarrow, in and out, wherever ratings are taken."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.data.joining import concatenate
from fedrecplus.errors import DataWarning, UserError

COLUMNS: dict[str, list[Any]] = {
    "who": ["ann", "bob", "ann", "cid", "bob", "cid"],
    "film": [7, 7, 9, 9, 11, 11],
    "stars": [4.5, 3.0, 1.0, 5.0, 2.5, 0.5],
    "at": [30, 20, 10, 60, 50, 40],
}
NAMED = {"user": "who", "item": "film", "rating": "stars", "timestamp": "at"}


def frame(backend: str, columns: dict[str, list[Any]] = COLUMNS) -> Any:
    if backend == "polars":
        return pl.DataFrame(columns)
    library = pytest.importorskip(backend)
    return library.table(columns) if backend == "pyarrow" else library.DataFrame(columns)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_comes_back_as_it_was(backend: str) -> None:
    ratings = fr.from_frame(frame(backend), **NAMED)
    assert str(ratings.scale) == "0.5:5:0.5"
    back = ratings.to_frame(backend)
    assert type(back) is type(frame(backend))
    rows = sorted(zip(*COLUMNS.values(), strict=True))
    found = pl.DataFrame(back) if backend == "polars" else back.to_pandas() if backend == "pyarrow" else back
    assert list(found.columns) == ["user", "item", "rating", "timestamp"]
    assert sorted(zip(*(list(found[name]) for name in found.columns), strict=True)) == rows


def test_a_lazy_frame_is_collected() -> None:
    lazy = pl.DataFrame(COLUMNS).lazy()
    assert len(fr.from_frame(lazy, **NAMED)) == 6


def test_without_times_there_is_no_column_of_them() -> None:
    ratings = fr.load("synthetic:clients=20,items=10,ratings_per_client=4")
    assert ratings.to_frame().columns == ["user", "item", "rating"]


def test_dates_become_seconds() -> None:
    moments = [datetime(1970, 1, 1, 0, 0, second) for second in (30, 20, 10, 59, 50, 40)]
    for column in (moments, [str(moment) for moment in moments]):
        ratings = fr.from_frame(pl.DataFrame({**COLUMNS, "at": column}), **NAMED)
        assert ratings.timestamps is not None
        assert sorted(ratings.timestamps.tolist()) == [10, 20, 30, 40, 50, 59]


def test_pandas_missing_values_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    broken = pandas.DataFrame({**COLUMNS, "stars": [4.5, None, 1.0, 5.0, 2.5, 0.5]})
    with pytest.raises(UserError, match=r"row 2: the rating is missing \(column 'stars'\)"):
        fr.from_frame(broken, **NAMED)
    with pytest.raises(UserError, match=r"row 1: the user is missing \(column 'who'\)"):
        fr.from_frame(pandas.DataFrame({**COLUMNS, "who": [None, *COLUMNS["who"][1:]]}), **NAMED)


FILMS = [uuid.UUID(int=film) for film in COLUMNS["film"]]


@pytest.mark.parametrize(
    ("films", "expected"),
    [
        ([7.0, 7.0, 9.0, 9.0, 11.0, 11.0], [7, 9, 11]),  # as pandas has whole numbers, one of which is missing
        ([7, 7, "x", "x", 11, 11], ["11", "7", "x"]),
        (FILMS, sorted({str(film) for film in FILMS})),
    ],
    ids=["numbers", "numbers and texts", "UUIDs"],
)
def test_ids_are_whole_numbers_where_all_are_and_texts_else(films: list[Any], expected: list[Any]) -> None:
    assert fr.from_frame(frame("pandas", {**COLUMNS, "film": films}), **NAMED).item_ids.tolist() == expected


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(UserError, match="no column 'stares'"):
        fr.from_frame(pl.DataFrame(COLUMNS), user="who", item="film", rating="stares")


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(UserError, match="a list is no set of ratings"):
        fr.split([1, 2, 3])
    with pytest.raises(UserError, match="unknown data frame library 'panda'"):
        fr.load("synthetic:clients=20,items=10,ratings_per_client=4").to_frame("panda")


def plenty() -> pl.DataFrame:
    return fr.load("synthetic:clients=40,items=30,ratings_per_client=8").to_frame()


@pytest.mark.parametrize(
    "function",
    [
        lambda frame: fr.describe(frame),
        lambda frame: fr.folds(frame),
        lambda frame: fr.split(frame, 1),
        lambda frame: fr.validation_cut(frame),
        lambda frame: fr.train(frame, None, fr.change(fr.preset("fedmf"), "server.rounds", 1)),
        lambda frame: fr.compare(frame, ["global-mean"], folds=2, workers=1),
        lambda frame: fr.cross_validate(frame, "bias-only", folds=2),
        lambda frame: fr.evaluate(
            fr.train(frame, None, fr.change(fr.preset("fedmf"), "server.rounds", 1)), frame, frame
        ),
        lambda frame: fr.run_audit(frame, "fedmf", users=2, rounds=1, attacks=["popularity"], workers=1),
    ],
)
def test_every_function_that_takes_ratings_takes_frames(function: Callable[[Any], object]) -> None:
    function(plenty())


def test_frames_are_joined_by_id_and_a_test_may_be_of_one_user() -> None:
    training = plenty()
    config = fr.change(fr.preset("fedmf"), "server.rounds", 2)
    one = training.filter(pl.col("user") == 3).with_columns(rating=pl.lit(4.0)).head(1)
    run = fr.train(training, one, config)
    expected = run.recommender.predict(3, one["item"].to_list())[0]
    assert run.mae == pytest.approx(abs(expected - 4.0))


def test_two_sets_together_are_one_fold() -> None:
    ratings = fr.load("synthetic:clients=40,items=30,ratings_per_client=8")
    training, test = fr.split(ratings, 0)
    both = concatenate(training, test)
    again = fr.split(both, 0, how="column")
    for one, other in zip((training, test), again, strict=True):
        assert np.array_equal(one.indptr, other.indptr)
        assert np.array_equal(one.items, other.items)
        assert np.array_equal(one.codes, other.codes)


def test_two_columns_that_could_be_meant_are_said() -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "score": [1, 5], "rating": [2, 4]})
    with pytest.warns(DataWarning, match="'rating' is taken for the rating, though 'score' could be meant"):
        ratings = fr.from_frame(frame)
    assert ratings.values.tolist() == [2.0, 4.0]
    fr.from_frame(frame, rating="score")  # no warning, which would be an error here


def test_columns_of_pandas_may_have_numbers_for_names_but_no_name_twice() -> None:
    pandas = pytest.importorskip("pandas")
    numbered = pandas.DataFrame([[1, 2, 5], [2, 3, 4], [1, 3, 3]])
    assert len(fr.from_frame(numbered, user="0", item="1", rating="2")) == 3
    with pytest.raises(UserError, match="the columns are '0', '1', '2'"):
        fr.load(numbered)
    twice = pandas.concat([numbered, numbered[[2]]], axis=1)
    with pytest.raises(UserError, match="columns of the same name: '2' 2 times"):
        fr.load(twice)


def test_ids_that_decimal_numbers_cannot_tell_apart_are_refused() -> None:
    frame = pl.DataFrame({"user": [2.0**53, 2.0**53 + 2], "item": [1, 2], "rating": [4.0, 5.0]})
    with pytest.raises(UserError, match=r"'user' holds decimal numbers beyond 2\^53"):
        fr.load(frame)
    assert len(fr.load(frame.cast({"user": pl.Int64}))) == 2
