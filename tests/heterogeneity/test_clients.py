"""Clients that differ: what is changed, what isn't, who takes part, and what attackers get."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import Config, assign, preset
from fedrecplus.engines import SimulationState, engine_of, prepare, rounds
from fedrecplus.experiments.heterogeneity.clients import (
    FEW,
    AttackedEngine,
    SkewedProblem,
    add_noise,
    affected_clients,
    leave_few,
    promote,
    promoted_item,
    rate_at_random,
    rotate,
    shift,
)
from fedrecplus.training.evaluation import predictor_of
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=60, items=50)
WHO = affected_clients(RATINGS, 0.3, 0)
NOBODY = np.zeros(RATINGS.clients, dtype=bool)
SHARE = 18 / 60


def test_the_share_is_kept_and_the_seed_alone_decides() -> None:
    assert WHO.sum() == 18
    assert (affected_clients(RATINGS, 0.3, 0) == WHO).all()
    assert (affected_clients(RATINGS, 0.3, 1) != WHO).any()
    assert not (WHO & ~affected_clients(RATINGS, 0.5, 0)).any()


@pytest.mark.parametrize("change", [rate_at_random, add_noise, leave_few, promote])
def test_affected_clients_ratings_change_and_no_others(change) -> None:
    changed = change(RATINGS, WHO, 0)
    pairs = [(RATINGS.of(client), changed.of(client)) for client in range(RATINGS.clients)]
    same = np.array([all(np.array_equal(a, b) for a, b in zip(*pair, strict=True)) for pair in pairs])
    assert same[~WHO].all()
    assert not same[WHO].all()


def test_few_means_few_and_promoted_items_get_the_best_rating_once() -> None:
    counts = np.diff(leave_few(RATINGS, WHO, 0).indptr)
    assert (counts[WHO] == np.minimum(np.diff(RATINGS.indptr)[WHO], FEW)).all()
    target, changed = promoted_item(RATINGS, 0), promote(RATINGS, WHO, 0)
    for client in np.flatnonzero(WHO):
        items, values = changed.of(int(client))
        assert values[items == target].tolist() == [5.0]
        assert (np.diff(items) > 0).all()


def test_under_skewed_participation_some_come_nearly_always_and_others_hardly_ever() -> None:
    problem = SkewedProblem(**vars(prepare(RATINGS, Config())))
    often = np.zeros(RATINGS.clients)
    for number in range(200):
        often[problem.cohort(number)] += 1 / 200
    assert often.max() > 0.8
    assert often[np.diff(RATINGS.indptr) > 0].min() < 0.1
    assert (problem.cohort(3) == problem.cohort(3)).all()


def config_of(rule: str, *more: str) -> Config:
    usual = [f"aggregation.rule={rule}", "model.factors=4", "model.learning_rate=0.1", "precision=float64"]
    return assign(Config(), [*usual, "server.rounds=5", *more])


def after(config: Config, who: np.ndarray | None, target: int | None = None, ratings=RATINGS):
    problem, engine = prepare(ratings, config), engine_of(config)
    engine = engine if who is None else AttackedEngine(engine, who, target)
    states: list[SimulationState] = [state for state, _ in rounds(engine, problem)]
    return states[-1], engine, problem


@pytest.mark.parametrize("rule", ["uniform", "wasserstein", "krum"])
def test_without_attackers_a_round_is_a_round(rule: str) -> None:
    expected, found = after(config_of(rule), None)[0], after(config_of(rule), NOBODY)[0]
    np.testing.assert_allclose(found.server.V, expected.server.V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.private.U, expected.private.U, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rows", ["own", "mean-own", "table"])
def test_copies_of_the_last_step_gain_weight_where_distance_counts(rows: str) -> None:
    _, engine, _ = after(config_of("wasserstein", f"aggregation.rows={rows}"), WHO)
    assert min(engine.weight_shares[1:]) > 2 * SHARE


def test_copies_gain_nothing_elsewhere() -> None:
    assert after(config_of("uniform"), WHO)[1].weight_shares == pytest.approx([SHARE] * 5)
    assert after(config_of("coordinate-median"), WHO)[1].weight_shares == []


@pytest.mark.parametrize("name", ["mf", "biased-mf", "fedmf"])
def test_a_push_raises_the_promoted_item_whatever_the_model(name: str) -> None:
    config = preset(name) if name == "fedmf" else config_of("uniform", f"model.rule={name}")
    config = assign(config, ["server.rounds=10", "server_optimizer.rule=sgd", "model.factors=4"])
    target, honest = promoted_item(RATINGS, 0), np.flatnonzero(~WHO)
    predicted = []
    for who in (None, WHO):
        state, engine, problem = after(config, who, target, RATINGS if who is None else promote(RATINGS, WHO, 0))
        told = predictor_of(engine, problem, state).predict(honest, np.full(len(honest), target))
        predicted.append(told.mean())
    assert predicted[1] > predicted[0] + 0.3


def test_shifted_clients_rate_lower_and_rotated_ones_keep_their_ratings_but_not_where_they_are() -> None:
    who = affected_clients(RATINGS, 0.3, seed=1)
    lower, other = shift(RATINGS, who, 1), rotate(RATINGS, who, 1)
    mine = who[RATINGS.client_of_rating]
    expected = np.clip(RATINGS.standard_values - 1.5, 1.0, 5.0)
    assert (np.abs(lower.standard_values[mine] - expected[mine]) <= 0.5).all()
    assert lower.standard_values[mine].mean() < RATINGS.standard_values[mine].mean() - 0.5
    for changed in (lower, other):
        np.testing.assert_array_equal(changed.codes[~mine], RATINGS.codes[~mine])
        np.testing.assert_array_equal(changed.items, RATINGS.items)
    for client in np.flatnonzero(who):
        own = RATINGS.client_of_rating == client
        assert sorted(other.codes[own]) == sorted(RATINGS.codes[own])
    assert (other.codes[mine] != RATINGS.codes[mine]).mean() > 0.3
