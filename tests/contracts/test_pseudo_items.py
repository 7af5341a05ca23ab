"""What every rule for pseudo items promises. A new file in pseudo_items/ is enrolled by being there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrecplus import simulation
from fedrecplus.device import Device
from fedrecplus.fast.pseudo import pseudo_rows
from fedrecplus.parts import choices, part
from fedrecplus.pseudo_items._drawing import draw_unrated
from fedrecplus.rounds.filling import pseudo_count, pseudo_items
from tests.contracts.one_round import broadcast_of, devices_of, problem_of

RULES = choices("pseudo_items")
DRAWN = [rule for rule in RULES if rule in ("random", "popular")]
"""rules that draw by the client's secret"""

ITEMS = 40
PROBLEMS = {rule: problem_of(f"pseudo_items.rule={rule}") for rule in RULES}
MESSAGES = {rule: broadcast_of(problem) for rule, problem in PROBLEMS.items()}
DEVICES = devices_of(PROBLEMS["none"])


def select(rule: str, count: int, device: Device) -> np.ndarray:
    return part("pseudo_items", rule).select(count, device, MESSAGES[rule], PROBLEMS[rule].config)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [0, 1, 7, ITEMS])
def test_a_set_is_of_unrated_items_as_many_as_asked_for_ascending(rule: str, count: int) -> None:
    for device in DEVICES:
        chosen = select(rule, count, device)
        expected = 0 if rule == "none" else min(count, ITEMS - len(device.items))
        assert chosen.dtype == np.int64
        assert len(chosen) == expected
        assert (np.diff(chosen) > 0).all()
        assert not np.isin(chosen, device.items).any()
        assert ((chosen >= 0) & (chosen < ITEMS)).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_client_that_rated_nothing_has_no_pseudo_items(rule: str) -> None:
    newcomer = replace(DEVICES[0], items=np.empty(0, np.int64), ratings=np.empty(0))
    assert pseudo_count(0, ITEMS, PROBLEMS[rule].config.pseudo_items) == 0
    assert len(select(rule, 0, newcomer)) == 0
    assert len(pseudo_items(MESSAGES[rule], newcomer, PROBLEMS[rule].config).items) == 0


@pytest.mark.parametrize("rule", RULES)
def test_the_same_client_asked_twice_chooses_the_same(rule: str) -> None:
    for device in DEVICES:
        assert (select(rule, 6, device) == select(rule, 6, device)).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_set_does_not_depend_on_who_was_asked_before(rule: str) -> None:
    forwards = [select(rule, 6, device) for device in DEVICES]
    backwards = [select(rule, 6, device) for device in reversed(DEVICES)][::-1]
    assert all((first == second).all() for first, second in zip(forwards, backwards, strict=True))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "none"])
def test_a_set_does_not_depend_on_the_batch_of_the_fast_engine(rule: str) -> None:
    problem = PROBLEMS[rule]
    state = simulation.start(problem)
    together = pseudo_rows(problem, state, problem.taking_part(0))[1]
    for client in (3, 17):
        alone = pseudo_rows(problem, state, np.array([client]))[1]
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        assert (alone.items[places] == together.items[places]).all()
        assert (alone.ratings[places] == together.ratings[places]).all()


@pytest.mark.parametrize("rule", DRAWN)
def test_other_secrets_draw_other_sets(rule: str) -> None:
    sets = {tuple(select(rule, 6, replace(DEVICES[0], secret=secret))) for secret in range(10)}
    assert len(sets) > 5


@pytest.mark.parametrize("rule", DRAWN)
def test_a_drawn_set_tells_nothing_of_the_ratings(rule: str) -> None:
    flipped = replace(DEVICES[0], ratings=6.0 - DEVICES[0].ratings)
    assert (select(rule, 6, DEVICES[0]) == select(rule, 6, flipped)).all()


def test_popular_items_are_drawn_as_often_as_they_are_rated() -> None:
    device = replace(DEVICES[0], items=np.empty(0, np.int64), ratings=np.empty(0))
    draws = np.concatenate([select("popular", 1, replace(device, secret=secret)) for secret in range(4000)])
    popularity = PROBLEMS["popular"].public.popularity + 1.0
    shares = np.bincount(draws, minlength=ITEMS) / len(draws)
    np.testing.assert_allclose(shares, popularity / popularity.sum(), atol=0.015)


def test_similar_items_are_those_with_the_greatest_cosine() -> None:
    features = MESSAGES["similar"].features
    for device in DEVICES:
        score = (features @ features[device.items].T).max(axis=1)
        chosen = select("similar", 5, device)
        others = np.setdiff1d(np.arange(ITEMS), np.concatenate([chosen, device.items]))
        assert score[chosen].min() >= score[others].max() - 1e-9


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(0, 70), st.integers(0, 2**64 - 1), st.data())
def test_drawing_is_without_repetition_and_a_longer_set_holds_a_shorter_one(
    items: int, count: int, key: int, data: st.DataObject
) -> None:
    rated = np.array(sorted(data.draw(st.sets(st.integers(0, items - 1)))), dtype=np.int64)

    def item_of(numbers: np.ndarray, draws: np.ndarray) -> np.ndarray:
        return (draws * items).astype(np.int64)

    chosen = draw_unrated(count, rated, items, key, item_of)
    assert len(chosen) == min(count, items - len(rated))
    assert (np.diff(chosen) > 0).all()
    assert not np.isin(chosen, rated).any()
    shorter = draw_unrated(count // 2, rated, items, key, item_of)
    assert np.isin(shorter, chosen).all()


def test_uniform_drawing_prefers_no_item() -> None:
    def item_of(numbers: np.ndarray, draws: np.ndarray) -> np.ndarray:
        return (draws * 10).astype(np.int64)

    sets = [draw_unrated(3, np.array([4]), 10, key, item_of) for key in range(3000)]
    counts = np.bincount(np.concatenate(sets), minlength=10)
    assert counts[4] == 0
    np.testing.assert_allclose(np.delete(counts, 4) / 3000, 1 / 3, atol=0.04)
