"""Public groups: the same for everybody, of items that are alike."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from fedrecplus.protocol import PublicItems
from fedrecplus.pseudo_items import grouped
from tests.contracts.one_round import broadcast_of, devices_of, problem_of

RANDOM = np.random.default_rng(3)
ITEMS = 401
NO_CATALOGUE = PublicItems(np.zeros((ITEMS, 0)), RANDOM.integers(0, 400, ITEMS))
WITH_YEARS = PublicItems(
    np.zeros((ITEMS, 0)), np.sort(RANDOM.integers(100, 130, ITEMS)), years=RANDOM.integers(1990, 1994, ITEMS)
)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("public", [NO_CATALOGUE, WITH_YEARS], ids=["bare", "years"])
def test_every_item_is_in_one_group_and_the_last_group_takes_the_rest(public: PublicItems, size: int) -> None:
    sizes = np.bincount(grouped.groups(public, size))
    assert sizes.sum() == ITEMS
    assert (sizes[:-1] == size).all()
    assert size <= sizes[-1] < 2 * size


def test_without_a_catalogue_neighbours_in_popularity_are_together() -> None:
    group = grouped.groups(NO_CATALOGUE, 2)
    most_popular_first = np.lexsort((np.arange(ITEMS), -NO_CATALOGUE.popularity))
    assert np.array_equal(group[most_popular_first][:-1], np.arange(ITEMS - 1) // 2)


def test_items_of_a_group_are_of_one_year_where_equally_popular_ones_are() -> None:
    group = grouped.groups(WITH_YEARS, 2)
    pairs = [np.flatnonzero(group == number) for number in range(group.max())]
    same = np.mean([np.ptp(WITH_YEARS.years[pair]) == 0 for pair in pairs])
    assert same > 0.9, "by chance it would be a quarter"


def test_a_client_uploads_whole_groups() -> None:
    problem = problem_of("pseudo_items.rule=grouped")
    message = broadcast_of(problem)
    group = grouped.groups(message.public, 2)
    for device in devices_of(problem):
        count = len(device.items)
        rows = np.concatenate([device.items, grouped.select(count, device, message, problem.config)])
        whole = np.bincount(group[rows], minlength=group.max() + 1)
        assert np.isin(whole[np.unique(group[device.items])], np.bincount(group)).all()


def test_a_group_is_found_however_small_the_catalogue() -> None:
    few = PublicItems(np.zeros((2, 0)), np.array([4, 1]))
    assert grouped.groups(few, 3).tolist() == [0, 0]


def test_groups_are_kept_as_long_as_their_catalogue_and_no_longer() -> None:
    public = PublicItems(np.zeros((9, 0)), np.arange(9))
    before, found = len(grouped._known), grouped.groups(public, 2)
    assert grouped.groups(public, 2) is found
    assert len(grouped._known) == before + 1
    del public
    gc.collect()
    assert len(grouped._known) == before
