"""What single rules of pseudo items promise beyond their contract, and the drawing that they share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fedrecplus.parts import similarity_matrix
from fedrecplus.parts.pseudo_items import PseudoItems, draw_unrated, grouped, in_wholes, size_class
from fedrecplus.protocol import PublicItems
from fedrecplus.testing import example_round

RANDOM = np.random.default_rng(3)
ITEMS = 401
NO_CATALOGUE = PublicItems(np.zeros((ITEMS, 0)), RANDOM.integers(0, 400, ITEMS))
WITH_YEARS = PublicItems(
    np.zeros((ITEMS, 0)), np.sort(RANDOM.integers(100, 130, ITEMS)), years=RANDOM.integers(1990, 1994, ITEMS)
)


def select(rule: str, count: int, device: object) -> np.ndarray:
    problem, message, _ = example_round(f"pseudo_items.rule={rule}")
    return problem.config.pseudo_items.select(count, device, message)


@pytest.mark.parametrize("rule", ["random", "popular"])
def test_a_drawn_set_follows_the_secret_and_tells_nothing_of_the_ratings(rule: str) -> None:
    device = example_round()[2][0]
    assert len({tuple(select(rule, 6, replace(device, secret=secret))) for secret in range(10)}) > 5
    flipped = replace(device, ratings=6.0 - device.ratings)
    np.testing.assert_array_equal(select(rule, 6, device), select(rule, 6, flipped))


def test_popular_items_are_drawn_as_often_as_they_are_rated() -> None:
    problem, _, devices = example_round()
    device = replace(devices[0], items=np.empty(0, np.int64), ratings=np.empty(0))
    draws = np.concatenate([select("popular", 1, replace(device, secret=secret)) for secret in range(4000)])
    popularity = problem.public.popularity + 1.0
    shares = np.bincount(draws, minlength=len(popularity)) / len(draws)
    np.testing.assert_allclose(shares, popularity / popularity.sum(), atol=0.015)


def test_similar_items_are_those_with_the_greatest_cosine() -> None:
    _, message, devices = example_round("pseudo_items.rule=similar")
    for device in devices:
        score = (message.features @ message.features[device.items].T).max(axis=1)
        chosen = select("similar", 5, device)
        others = np.setdiff1d(np.arange(len(score)), np.concatenate([chosen, device.items]))
        assert score[chosen].min() >= score[others].max() - 1e-9


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(0, 70), st.integers(0, 2**64 - 1), st.data())
def test_drawing_is_without_repetition_and_a_longer_set_holds_a_shorter_one(
    items: int, count: int, key: int, data: st.DataObject
) -> None:
    rated = np.array(sorted(data.draw(st.sets(st.integers(0, items - 1)))), dtype=np.int64)
    chosen = draw_unrated(count, rated, items, key)
    assert len(chosen) == min(count, items - len(rated))
    assert (np.diff(chosen) > 0).all()
    assert not np.isin(chosen, rated).any()
    assert np.isin(draw_unrated(count // 2, rated, items, key), chosen).all()


def test_uniform_drawing_prefers_no_item() -> None:
    sets = [draw_unrated(3, np.array([4]), 10, key) for key in range(3000)]
    counts = np.bincount(np.concatenate(sets), minlength=10)
    assert counts[4] == 0
    np.testing.assert_allclose(np.delete(counts, 4) / 3000, 1 / 3, atol=0.04)


@settings(max_examples=100)
@given(st.integers(0, 60), st.floats(0, 5), st.booleans())
def test_pseudo_items_never_outnumber_unrated_ones_and_fill_a_size_class(
    rated: int, ratio: float, size_classes: bool
) -> None:
    rule = PseudoItems.choose("random", ratio=ratio, size_classes=size_classes)
    number = rule.count(rated, 60)
    assert 0 <= number <= 60 - rated
    if rated == 0:
        assert number == 0
    elif size_classes and number < 60 - rated:
        assert size_class(rated + number) == rated + number
    elif not size_classes:
        assert number == min(round(ratio * rated), 60 - rated)


def test_there_are_few_size_classes_each_less_than_a_third_above_the_last() -> None:
    classes = sorted({size_class(rows) for rows in range(1, 1025)})
    assert classes == [16, 21, 26, 32, 41, 51, 64, 81, 102, 128, 162, 204, 256, 323, 407, 512, 646, 813, 1024]
    assert all(size_class(rows) >= rows and size_class(size_class(rows)) == size_class(rows) for rows in range(1, 5000))


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("public", [NO_CATALOGUE, WITH_YEARS], ids=["bare", "years"])
def test_every_item_is_in_one_group_and_the_last_group_takes_the_rest(public: PublicItems, size: int) -> None:
    sizes = np.bincount(grouped.groups(public, grouped.Settings(ratio=size - 1)))
    assert sizes.sum() == ITEMS
    assert (sizes[:-1] == size).all()
    assert size <= sizes[-1] < 2 * size


def test_groups_are_of_neighbours_in_popularity_and_of_one_year_where_they_can_be() -> None:
    bare = grouped.groups(NO_CATALOGUE, grouped.Settings())
    most_popular_first = np.lexsort((np.arange(ITEMS), -NO_CATALOGUE.popularity))
    np.testing.assert_array_equal(bare[most_popular_first][:-1], np.arange(ITEMS - 1) // 2)
    group = grouped.groups(WITH_YEARS, grouped.Settings())
    pairs = [np.flatnonzero(group == number) for number in range(group.max())]
    assert np.mean([np.ptp(WITH_YEARS.years[pair]) == 0 for pair in pairs]) > 0.9, "by chance it would be a quarter"


def test_a_client_uploads_whole_groups() -> None:
    _, message, devices = example_round("pseudo_items.rule=grouped")
    group = grouped.groups(message.public, grouped.Settings())
    for device in devices:
        rows = np.concatenate([device.items, select("grouped", len(device.items), device)])
        whole = np.bincount(group[rows], minlength=group.max() + 1)
        assert np.isin(whole[np.unique(group[device.items])], np.bincount(group)).all()


def test_a_group_is_found_however_small_the_catalogue() -> None:
    few = PublicItems(np.zeros((2, 0)), np.array([4, 1]))
    assert grouped.groups(few, grouped.Settings(ratio=2.0)).tolist() == [0, 0]


@pytest.mark.parametrize("ratio", [1.0, 2.0])
@pytest.mark.parametrize("public", [NO_CATALOGUE, WITH_YEARS], ids=["bare", "years"])
def test_size_classes_are_filled_by_whole_groups(public: PublicItems, ratio: float) -> None:
    """401 items make one group larger than the others; uploads that touch it are larger by as much."""
    rule = grouped.Grouped(grouped.Settings(ratio=ratio, size_classes=True))
    group = rule.public_groups(public)
    larger, extra = rule.extra_rows(public)
    assert extra == ITEMS % (1 + int(ratio)) > 0
    _, message, devices = example_round("pseudo_items.rule=grouped")
    message = replace(message, V=np.zeros((ITEMS, 2)), public=public)
    dice = np.random.default_rng(0)
    for number in range(30):
        items = np.sort(dice.choice(ITEMS, dice.integers(1, 60), replace=False))
        device = replace(devices[0], items=items, ratings=np.ones(len(items)), secret=number)
        more = extra if np.isin(items, larger).any() else 0
        count = rule.count(len(items), ITEMS, more)
        rows = np.concatenate([items, rule.select(count, device, message)])
        assert len(rows) - more == in_wholes(size_class(round((1 + ratio) * len(items))), 1 + int(ratio))
        there = np.bincount(group[rows], minlength=group.max() + 1)
        assert ((there == 0) | (there == np.bincount(group))).all()


def test_cosines_that_agree_to_ten_decimals_are_one() -> None:
    nearly = np.array([[1 / 3], [1 / 3 + 4e-11], [1 / 3 + 8e-11]])
    assert similarity_matrix(nearly, np.ones((1, 1)))[:, 0].tolist() == [0.3333333333, 0.3333333334, 0.3333333334]
