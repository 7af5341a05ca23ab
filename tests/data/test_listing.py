"""Items of a list that was public before: no rating adds one, and none is missing because nobody rated it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data.joining import join
from fedrecplus.errors import DataWarning, UserError

RATINGS = {"user": [1, 1, 2, 2, 3], "item": [7, 30, 7, 9, 30], "rating": [5, 1, 4, 2, 3]}


def listed(films: pl.DataFrame, ratings: dict[str, list[int]] = RATINGS) -> fr.Ratings:
    return fr.from_frame(pl.DataFrame(ratings), items=films, listed=True, scale="1:5:1")


def test_the_items_are_those_of_the_list() -> None:
    films = pl.DataFrame({"item": [100, 30, 9, 7], "title": ["Unseen", "C (1990)", "B", "A"]})
    ratings = listed(films)
    assert ratings.item_ids.tolist() == [7, 9, 30, 100]
    assert ratings.item_counts().tolist() == [2, 1, 2, 0]
    assert ratings.of(0)[1].tolist() == [5.0, 1.0]
    assert ratings.catalogue is not None
    assert ratings.catalogue.titles == ("A", "B", "C", "Unseen")
    assert ratings.listed
    assert not fr.from_frame(pl.DataFrame(RATINGS), items=films, scale="1:5:1").listed


def test_ratings_of_other_items_are_left_out_and_said() -> None:
    with pytest.warns(DataWarning, match="2 of 5 ratings are of items that it doesn't list"):
        ratings = listed(pl.DataFrame({"item": ["7", "9", "x"]}))
    assert ratings.item_ids.tolist() == ["7", "9", "x"]
    assert (ratings.clients, len(ratings)) == (3, 3)
    with pytest.raises(UserError, match="lists none of the rated items"):
        listed(pl.DataFrame({"item": [1, 2]}))


def test_ratings_stay_ascending_where_ids_sort_otherwise_as_text() -> None:
    ratings = listed(pl.DataFrame({"item": ["30", "9", "7", "seven"]}))
    assert ratings.item_ids.tolist() == ["30", "7", "9", "seven"]
    items, values = ratings.of(0)
    assert items.tolist() == [0, 1]
    assert values.tolist() == [1.0, 5.0]


def test_test_ratings_add_no_item() -> None:
    training = listed(pl.DataFrame({"item": [7, 9, 30]}))
    test = fr.from_frame(pl.DataFrame({"user": [1, 4], "item": [9, 77], "rating": [3, 3]}), scale="1:5:1")
    grown, joined = join(training, test)
    assert grown.item_ids.tolist() == joined.item_ids.tolist() == [7, 9, 30]
    assert len(joined) == 1


def test_a_list_and_a_description_of_the_items_are_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame(RATINGS).write_csv(tmp_path / "ratings.csv")
    pl.DataFrame({"item": [7, 9, 30, 31]}).write_csv(tmp_path / "films.csv")
    info = ["data", "info", str(tmp_path / "ratings.csv"), "--catalogue", str(tmp_path / "films.csv")]
    assert exit_code_of(info) == 0
    assert exit_code_of([*info, "--items", str(tmp_path / "films.csv")]) == 2
    assert "give --catalogue alone" in capsys.readouterr().err
