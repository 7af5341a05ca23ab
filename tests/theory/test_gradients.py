"""The gradients that the theory looks at are those of the loss, and its constants hold for them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.engines import Engine, Problem, SimulationState, engine_of, message_of, prepare, rounds
from fedrecplus.experiments.theory.constants import constants, look
from fedrecplus.experiments.theory.gradients import GradientRows, rows_at
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=25, items=30)
CHANGES = [
    "precision=float64", "model.factors=3", "pseudo_items.rule=random", "virtual_ratings.rule=user-average",
    "model.learning_rate=0.05", "server.rounds=3",
]  # fmt: skip


def moved(*changes: str) -> tuple[Engine, Problem, SimulationState]:
    config = assign(Config(), [*CHANGES, *changes])
    problem, engine = prepare(RATINGS, config), engine_of(config)
    *_, (state, _) = rounds(engine, problem)
    return engine, problem, state


def shifted(state: SimulationState, V: np.ndarray) -> SimulationState:
    return replace(state, server=replace(state.server, V=V))


def test_the_mean_gradient_is_the_slope_of_the_objective() -> None:
    engine, problem, state = moved()
    rows = rows_at(engine, problem, state).true()
    gradient = rows.mean(np.full(rows.clients, 1.0 / rows.clients))
    rng, step = np.random.default_rng(0), 1e-5
    for _ in range(8):
        direction = rng.normal(size=gradient.shape)
        values = [
            rows_at(engine, problem, shifted(state, state.server.V + sign * step * direction)).true().objective()
            for sign in (1, -1)
        ]
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(float((gradient * direction).sum()), rel=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["virtual_ratings.rule=predicted", "virtual_ratings.refresh=false"],
        ["pseudo_items.redraw=true"],
        ["pseudo_items.rule=none"],
        ["pseudo_items.rule=none", "virtual_ratings.rule=nearest"],  # nobody computes features then
    ],
)
def test_a_client_s_gradient_is_what_it_uploads(changes: list[str]) -> None:
    """After one full local step, with U as it is then."""
    engine, problem, state = moved(*changes)
    message, clients = message_of(problem, state), problem.cohort(state.server.round)
    uploads, private = engine.uploads(problem, state.private, message, clients)
    rows = rows_at(engine, problem, replace(state, private=replace(state.private, U=private.U)))
    for number, upload in enumerate(uploads):
        own = rows.client == number
        assert (rows.item[own] == upload.items).all()
        np.testing.assert_allclose(-0.05 * rows.gradient[own], upload.delta, atol=1e-12)


def test_no_client_s_gradient_changes_faster_than_L() -> None:
    """L = max ‖U_u‖² + λ."""
    engine, problem, state = moved("model.regularisation=0.3")
    longest = max(float(U[:-1] @ U[:-1]) for U in state.private.U[problem.cohort(3)])
    assert rows_at(engine, problem, state).smooth == pytest.approx(longest + 0.3)
    rng = np.random.default_rng(1)
    for _ in range(5):
        V = state.server.V + rng.normal(size=state.server.V.shape)
        first, second = rows_at(engine, problem, state), rows_at(engine, problem, shifted(state, V))
        change = first.sums(((first.gradient - second.gradient) ** 2).sum(axis=1))
        way = first.sums(((state.server.V - V)[first.item] ** 2).sum(axis=1))
        assert (change <= first.smooth**2 * way * (1 + 1e-9)).all()


def test_rated_and_pseudo_rows_make_up_the_whole_gradient() -> None:
    rows = rows_at(*moved())
    alpha = rows.alpha
    assert ((alpha > 0) & (alpha < 1)).all()
    pseudo = rows.scaled(np.where(rows.rated, 0.0, 1.0 / (1.0 - alpha[rows.client])))
    for client in range(rows.clients):
        own = np.eye(rows.clients)[client]
        parts = alpha[client] * rows.true().mean(own) + (1.0 - alpha[client]) * pseudo.mean(own)
        np.testing.assert_allclose(parts, rows.mean(own), atol=1e-12)


def test_local_variance_is_that_of_every_batch_there_is() -> None:
    rng = np.random.default_rng(2)
    gradient = rng.normal(size=(5, 3))
    rows = GradientRows(1, np.zeros(5, int), np.arange(5), np.ones(5, bool), gradient, np.zeros(5), 5, 1.0)
    errors = []
    for batch in itertools.combinations(range(5), 2):
        estimate = np.zeros((5, 3))
        estimate[list(batch)] = gradient[list(batch)] * 5 / 2
        errors.append(((estimate - gradient) ** 2).sum())
    assert rows.local_variance(2)[0] == pytest.approx(np.mean(errors))
    assert rows.local_variance(0)[0] == 0.0


def test_the_dissimilarity_assumption_holds_at_every_look() -> None:
    engine, problem, _ = moved("server.rounds=6")
    rng, looks = np.random.default_rng(3), []
    for number, (state, _) in enumerate(rounds(engine, problem)):
        rows = rows_at(engine, problem, state)
        looks.append(look(number, rows, rng.dirichlet(np.ones(rows.clients)), 0.0, batch_size=0))
    k = constants(looks)
    for each in looks:
        for norm, mean in zip(each.dissimilarity, (each.gradient, each.surrogate), strict=True):
            assert norm <= (k.A**2 + 1) * mean + k.sigma_G**2 + 1e-9
    assert k.chi_wp == max(each.chi_wp for each in looks)


def test_uniform_weights_have_no_divergence_and_no_distance() -> None:
    rows = rows_at(*moved("pseudo_items.rule=none"))
    found = look(0, rows, np.full(rows.clients, 1.0 / rows.clients), 0.0, batch_size=0)
    assert (found.chi_wp, found.chi_pw, found.distance, found.gap, found.alpha) == (0.0, 0.0, 0.0, 0.0, 1.0)
