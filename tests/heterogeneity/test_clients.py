"""Clients that differ: what is changed, what isn't, and that it depends on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus import simulation
from fedrecplus.config import Config
from fedrecplus.experiments.heterogeneity_clients import (
    FEW,
    add_noise,
    affected,
    leave_few,
    promote,
    promoted_item,
    rate_at_random,
    skewed,
)
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=80, items=60)
WHO = affected(RATINGS, 0.25, 0)


def test_the_share_is_kept_and_the_seed_alone_decides() -> None:
    assert WHO.sum() == 20
    assert (affected(RATINGS, 0.25, 0) == WHO).all()
    assert (affected(RATINGS, 0.25, 1) != WHO).any()
    assert not (WHO & ~affected(RATINGS, 0.5, 0)).any()


@pytest.mark.parametrize("change", [rate_at_random, add_noise, leave_few, promote])
def test_the_others_keep_their_ratings(change) -> None:
    changed = change(RATINGS, WHO, 0)
    for client in np.flatnonzero(~WHO):
        for before, after in zip(RATINGS.of(int(client)), changed.of(int(client)), strict=True):
            assert (before == after).all()
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(*_values(RATINGS, changed), strict=True))


def _values(*sets) -> list[list[np.ndarray]]:
    return [[ratings.of(int(client))[1] for client in np.flatnonzero(WHO)] for ratings in sets]


def test_few_means_few() -> None:
    counts = np.diff(leave_few(RATINGS, WHO, 0).indptr)
    assert (counts[WHO] == np.minimum(np.diff(RATINGS.indptr)[WHO], FEW)).all()


def test_promoted_items_get_the_best_rating_once() -> None:
    target, changed = promoted_item(RATINGS, 0), promote(RATINGS, WHO, 0)
    for client in np.flatnonzero(WHO):
        items, values = changed.of(int(client))
        assert values[items == target].tolist() == [5.0]
        assert (np.diff(items) > 0).all()


def test_skewed_clients_come_as_often_as_they_are_willing() -> None:
    problem = skewed(simulation.prepare(RATINGS, Config()))
    often = np.zeros(RATINGS.clients)
    for number in range(200):
        often[problem.taking_part(number)] += 1 / 200
    assert often.max() > 0.8
    assert often[np.diff(RATINGS.indptr) > 0].min() < 0.1
    assert (problem.taking_part(3) == problem.taking_part(3)).all()
