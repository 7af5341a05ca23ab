"""Ratings that come later are one set with those before; who leaves has never been there."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.data.adding import added, without
from fedrecplus.data.files.read import ratings_of_frame
from fedrecplus.errors import UserError

FILMS = pl.DataFrame({"item": [1, 2, 3, 4], "title": ["a", "b", "c", "d"], "genres": ["X", "X|Y", "Y", "Y|X"]})


def rated(*lines: tuple[str, int, int, int]) -> fr.Ratings:
    frame = pl.DataFrame(lines, schema=["user", "item", "rating", "timestamp"], orient="row")
    films = FILMS.filter(pl.col("item").is_in(frame["item"].to_list()))
    return ratings_of_frame(frame, fr.FileOptions(scale="1:5:1"), items=films, few=True)


FIRST = rated(("ann", 1, 5, 10), ("ann", 2, 4, 11), ("bob", 2, 1, 5), ("cay", 1, 3, 6))


def pairs(ratings: fr.Ratings) -> set[tuple[str, int, float]]:
    return {(user, item, rating) for user, item, rating in ratings.to_frame()["user", "item", "rating"].iter_rows()}


def test_of_a_pair_in_both_the_later_rating_counts() -> None:
    both = added(FIRST, rated(("ann", 2, 2, 20), ("bob", 1, 5, 21)))
    assert pairs(both) == {("ann", 1, 5.0), ("ann", 2, 2.0), ("bob", 1, 5.0), ("bob", 2, 1.0), ("cay", 1, 3.0)}


def test_new_people_come_with_their_items_and_what_is_known_of_these() -> None:
    both = added(FIRST, rated(("dan", 1, 2, 29), ("dan", 3, 5, 30), ("dan", 4, 4, 31)))
    assert both.client_ids.tolist() == ["ann", "bob", "cay", "dan"]
    assert both.item_ids.tolist() == [1, 2, 3, 4]
    assert both.catalogue is not None
    assert both.catalogue.titles == ("a", "b", "c", "d")
    column = both.catalogue.genre_names.index("Y")
    assert both.catalogue.genres[:, column].tolist() == [False, True, True, True]


def test_what_is_added_comes_after_what_was_there() -> None:
    both = added(FIRST, rated(("ann", 4, 1, 11), ("bob", 1, 5, 5)))
    ages = both.ages()
    assert ages is not None
    ann = dict(zip(both.item_ids[both.items[:3]].tolist(), ages[:3].tolist(), strict=True))
    assert ann == {1: 2, 2: 1, 4: 0}


def test_who_leaves_takes_along_the_items_that_nobody_else_rated() -> None:
    grown = added(FIRST, rated(("dan", 3, 5, 30), ("dan", 1, 4, 31)))
    left = without(grown, ["dan", "bob"])
    assert pairs(left) == pairs(FIRST) - {("bob", 2, 1.0)}
    assert (left.client_ids.tolist(), left.item_ids.tolist()) == (["ann", "cay"], [1, 2])
    assert left.catalogue is not None
    assert left.catalogue.titles == ("a", "b")
    np.testing.assert_array_equal(left.indptr, [0, 2, 3])


def test_who_is_not_there_cannot_leave() -> None:
    with pytest.raises(UserError, match="nobody is called 'eve'"):
        without(FIRST, ["eve"])
