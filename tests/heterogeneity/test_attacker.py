"""The attacker that knows how it is weighed."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus import fast, simulation
from fedrecplus.config import Config, assign
from fedrecplus.experiments.heterogeneity_attacker import Attack, attacked_round
from fedrecplus.experiments.heterogeneity_clients import affected, promote, promoted_item
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=60, items=50)
WHO = affected(RATINGS, 0.3, 0)
NOBODY = np.zeros(RATINGS.clients, dtype=bool)
SHARE = 18 / 60


def config_of(rule: str, *more: str) -> Config:
    usual = [f"aggregation.rule={rule}", "model.factors=4", "client.learning_rate=0.1"]
    return assign(Config(precision="float64"), [*usual, *more])


def after(rule: str, attack: Attack | None, rounds: int = 5, ratings=RATINGS, more: tuple[str, ...] = ()):
    problem = simulation.prepare(ratings, config_of(rule, *more))
    state, shares = simulation.start(problem), []
    for _ in range(rounds):
        if attack is None:
            state, _ = fast.simulate_round(problem, state)
        else:
            state, share = attacked_round(problem, state, attack)
            shares.append(share)
    return state, shares


@pytest.mark.parametrize("rule", ["uniform", "wasserstein", "coordinate-median", "krum"])
@pytest.mark.parametrize("step", ["last", "mean"])
def test_without_attackers_a_round_is_a_round(rule: str, step: str) -> None:
    more = (f"aggregation.global_step={step}",)
    expected, _ = after(rule, None, more=more)
    found, _ = after(rule, Attack(NOBODY, None), more=more)
    np.testing.assert_allclose(found.server.V, expected.server.V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.U, expected.U, rtol=0, atol=1e-9)


def test_copies_earn_weight_where_distance_counts_and_nowhere_else() -> None:
    _, earned = after("wasserstein", Attack(WHO, None))
    assert min(earned[1:]) > 2 * SHARE
    _, counted = after("uniform", Attack(WHO, None))
    assert counted == pytest.approx([SHARE] * 5)
    _, none = after("coordinate-median", Attack(WHO, None))
    assert none == [None] * 5


@pytest.mark.parametrize("rows", ["own", "mean-own", "table"])
def test_copies_earn_weight_under_every_reading(rows: str) -> None:
    _, earned = after("wasserstein", Attack(WHO, None), more=(f"aggregation.rows={rows}",))
    assert min(earned[1:]) > 2 * SHARE


def test_a_push_raises_the_promoted_item() -> None:
    target, pushed = promoted_item(RATINGS, 0), promote(RATINGS, WHO, 0)
    clean, _ = after("uniform", None, 10)
    moved, _ = after("uniform", Attack(WHO, target), 10, pushed)
    honest = np.flatnonzero(~WHO)
    before, now = (state.U[honest, :-1] @ state.server.V[target] for state in (clean, moved))
    assert now.mean() > before.mean() + 0.3
