"""The gradients that the theory looks at are those of the loss, and its constants hold for them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus import fast, simulation
from fedrecplus.config import Config, assign
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.theory.constants import constants, look
from fedrecplus.theory.local_gradients import Rows, local_variance, rows_at
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=25, items=30)
CHANGES = [
    "precision=float64", "model.factors=3", "pseudo_items.rule=random", "virtual_ratings.rule=user-average",
    "client.learning_rate=0.05",
]  # fmt: skip


def moved(*changes: str) -> tuple[Problem, SimulationState]:
    problem = simulation.prepare(RATINGS, assign(Config(), [*CHANGES, *changes]))
    state = simulation.start(problem)
    for _ in range(3):
        state, _ = fast.simulate_round(problem, state)
    return problem, state


def shifted(state: SimulationState, V: np.ndarray) -> SimulationState:
    return replace(state, server=replace(state.server, V=V))


@pytest.mark.parametrize("changes", [[], ["model.biases=true", "model.global_mean=true", "model.shrink_to=start"]])
def test_the_mean_gradient_is_the_slope_of_the_objective(changes: list[str]) -> None:
    problem, state = moved(*changes)
    rows = rows_at(problem, state).true()
    gradient = rows.mean(np.full(rows.clients, 1.0 / rows.clients))
    rng, step = np.random.default_rng(0), 1e-5
    for _ in range(8):
        direction = rng.normal(size=gradient.shape)
        values = [
            rows_at(problem, shifted(state, state.server.V + sign * step * direction)).true().objective()
            for sign in (1, -1)
        ]
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(float((gradient * direction).sum()), rel=1e-5)


def test_no_client_s_gradient_changes_faster_than_L() -> None:
    problem, state = moved()
    rng = np.random.default_rng(1)
    for _ in range(5):
        V = state.server.V + rng.normal(size=state.server.V.shape)
        first, second = rows_at(problem, state), rows_at(problem, shifted(state, V))
        change = first.sums(((first.gradient - second.gradient) ** 2).sum(axis=1))
        way = first.sums(((state.server.V - V)[first.item] ** 2).sum(axis=1))
        assert (change <= first.smooth**2 * way * (1 + 1e-9)).all()


def test_rated_and_pseudo_rows_make_up_the_whole_gradient() -> None:
    problem, state = moved()
    rows = rows_at(problem, state)
    alpha = rows.alpha
    assert ((alpha > 0) & (alpha < 1)).all()
    pseudo = rows.scaled(np.where(rows.rated, 0.0, 1.0 / (1.0 - alpha[rows.client])))
    for client in range(rows.clients):
        own = np.eye(rows.clients)[client]
        parts = alpha[client] * rows.true().mean(own) + (1.0 - alpha[client]) * pseudo.mean(own)
        np.testing.assert_allclose(parts, rows.mean(own), atol=1e-12)


def test_local_variance_is_that_of_every_batch_there_is() -> None:
    problem, _ = moved("client.batch_size=2")
    rng = np.random.default_rng(2)
    gradient = rng.normal(size=(5, 3))
    rows = Rows(1, np.zeros(5, int), np.arange(5), np.ones(5, bool), gradient, np.zeros(5), 5, 1.0)
    errors = []
    for batch in itertools.combinations(range(5), 2):
        estimate = np.zeros((5, 3))
        estimate[list(batch)] = gradient[list(batch)] * 5 / 2
        errors.append(((estimate - gradient) ** 2).sum())
    assert local_variance(rows, problem)[0] == pytest.approx(np.mean(errors))


def test_full_batches_have_no_local_variance() -> None:
    problem, state = moved()
    assert (local_variance(rows_at(problem, state), problem) == 0.0).all()


def test_the_dissimilarity_assumption_holds_at_every_look() -> None:
    problem, state = moved()
    rng, looks = np.random.default_rng(3), []
    for number in range(6):
        rows = rows_at(problem, state)
        p = rng.dirichlet(np.ones(rows.clients))
        looks.append(look(problem, number, rows, p, 0.0))
        state, _ = fast.simulate_round(problem, state)
    k = constants(looks)
    for each in looks:
        for spread, mean in zip(each.dissimilarity, (each.gradient, each.surrogate), strict=True):
            assert spread <= (k.A**2 + 1) * mean + k.sigma_G**2 + 1e-9
    assert k.chi_wp == max(each.chi_wp for each in looks)


def test_uniform_weights_have_no_divergence_and_no_distance() -> None:
    problem, state = moved("pseudo_items.rule=none")
    rows = rows_at(problem, state)
    found = look(problem, 0, rows, np.full(rows.clients, 1.0 / rows.clients), 0.0)
    assert (found.chi_wp, found.chi_pw, found.distance, found.gap, found.alpha) == (0.0, 0.0, 0.0, 0.0, 1.0)
