"""Errors against counting by hand, the cold, and groups."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.data import Scale, split
from fedrecplus.training import Fallback, Predictor, errors_of, evaluation, score
from fedrecplus.training.groups import by_group, tail_items
from tests.small_data import small_ratings
from tests.training.test_ranking import ratings_of

RATINGS = small_ratings(clients=40)
TRAINING, TEST = split(RATINGS, 1)
TAIL = tail_items(TRAINING.item_counts())
PREDICTOR = Predictor(
    np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=(40, 3)) + 0.5
)


@pytest.mark.parametrize("scale", [Scale(1, 5, 1), Scale(0, 100, 1), Scale(0.5, 5, 0.5)])
def test_errors_are_on_the_data_s_own_scale_and_clipped(scale: Scale) -> None:
    ends = ratings_of({(0, 0): scale.low, (1, 1): scale.high}, 3, 3, scale)
    known = Fallback.of(ends).knowing_everything()
    far_off = score(ends, lambda clients, _: np.array([-7.0, 9.0]), known)
    assert far_off.rmse == far_off.mae == far_off.nmse == 0
    assert far_off.unclipped > 4
    middle = score(ends, lambda clients, _: np.full(2, 3.0), known)
    assert middle.mae == pytest.approx((scale.high - scale.low) / 2)
    assert middle.nmse == pytest.approx(2 * middle.mae**2 / (scale.low**2 + scale.high**2))


def test_cold_items_get_the_client_s_mean_cold_clients_the_items_and_none_is_dropped() -> None:
    training = ratings_of({(0, 0): 2.0, (0, 1): 4.0, (1, 0): 5.0}, 3, 3)
    test = ratings_of({(0, 2): 3.0, (2, 0): 4.0, (2, 2): 4.0, (1, 1): 1.0}, 3, 3)
    scores = score(test, lambda clients, _: np.full(len(clients), 1.0), Fallback.of(training))
    assert (scores.ratings, scores.cold) == (4, 3)
    mean = 11 / 3
    item, other = (7 + 10 * mean) / (2 + 10), (4 + 10 * mean) / (1 + 10)
    client = mean + (2 - item + 4 - other) / (2 + 5) + (item + other - 2 * mean) / (2 + 20)
    assert scores.mae == pytest.approx((abs(client - 3) + abs(item - 4) + abs(mean - 4) + 0) / 4)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fallback = Fallback.of(TRAINING)
    whole = score(TEST, PREDICTOR.predict, fallback)
    errors = errors_of(TEST, PREDICTOR.predict, fallback, TAIL)
    monkeypatch.setattr(evaluation, "_BLOCK", 7)
    in_blocks = score(TEST, PREDICTOR.predict, fallback)
    assert in_blocks.rmse == pytest.approx(whole.rmse)
    assert in_blocks.cold == whole.cold
    np.testing.assert_allclose(errors_of(TEST, PREDICTOR.predict, fallback, TAIL).squared, errors.squared)


def test_weights_are_copied_for_a_few_pairs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may have a table of its own: pairs times tables of ML-100K would be 26 GB."""
    copied: list[int] = []

    class Weights(np.ndarray):
        def __getitem__(self, clients: object) -> object:
            copied.append(np.size(clients))
            return super().__getitem__(clients).view(np.ndarray)

    clients, items = np.arange(40) % 3, np.arange(40) % 5
    W, X = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(5, 4)
    monkeypatch.setattr(evaluation, "_NUMBERS", 28)
    predicted = Predictor(W.view(Weights), X).predict(clients, items)
    np.testing.assert_array_equal(predicted, (W[clients] * X[items]).sum(axis=1))
    assert max(copied) == 7
    assert len(Predictor(W, X).predict(clients[:0], items[:0])) == 0


def test_errors_by_client_add_up() -> None:
    fallback = Fallback.of(TRAINING)
    errors, scores = errors_of(TEST, PREDICTOR.predict, fallback, TAIL), score(TEST, PREDICTOR.predict, fallback)
    assert errors.count.sum() == len(TEST)
    assert np.sqrt(errors.squared.sum() / len(TEST)) == pytest.approx(scores.rmse)
    groups = by_group(errors, TRAINING)
    assert groups["worst_tenth"]["rmse"] > scores.rmse
    assert 0 < groups["few_ratings"]["clients"] < TEST.clients
    assert 0 < groups["tail_items"]["ratings"] < len(TEST)
