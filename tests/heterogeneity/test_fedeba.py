"""FedEBA+ by plain loops over clients and items, and where it falls together with other rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import assign
from fedrecplus.engines import Problem, SimulationState, engine_of, message_of, prepare, rounds
from fedrecplus.experiments.heterogeneity import START, fedeba
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=20, items=25)
CHANGES = ("precision=float64", "model.factors=3", "server.rounds=3", "aggregation.weigh_on=server")


def states(*changes: str) -> Iterator[tuple[fedeba.FedEbaEngine, Problem, SimulationState]]:
    """Before each round but the first, whose clients all predict alike."""
    config = assign(START, [*CHANGES, *changes])
    engine, problem = fedeba.FedEbaEngine(engine_of(config)), prepare(RATINGS, config)
    for state, _ in rounds(engine, problem):
        yield engine, problem, state


def loss(state: SimulationState, client: int) -> float:
    items, ratings = RATINGS.of(client)
    U, V = state.private.U[client], state.server.V
    return float(np.mean([(r - U[:-1] @ V[i] - U[-1]) ** 2 / 2 for i, r in zip(items, ratings, strict=True)]))


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_step_is_the_mean_by_losses_and_the_mean_of_first_steps(epochs: int) -> None:
    for engine, problem, state in states(f"model.local_epochs={epochs}"):
        message, everybody = message_of(problem, state), problem.cohort(state.server.round)
        once = replace(problem, config=assign(problem.config, ["model.local_epochs=1"]))
        uploads, first = (engine.engine.uploads(p, state.private, message, everybody)[0] for p in (problem, once))
        expected = np.zeros(state.server.V.shape)
        for item in range(len(expected)):
            raters = [(u, f) for u, f in zip(uploads, first, strict=True) if item in u.items]
            if raters:
                p = [np.exp(loss(state, u.client) / fedeba.TEMPERATURE) for u, _ in raters]
                by_loss = sum(w * u.delta[u.items == item][0] for w, (u, _) in zip(p, raters, strict=True)) / sum(p)
                even = sum(f.delta[f.items == item][0] for _, f in raters) / len(raters)
                expected[item] = (1 - fedeba.ALIGNMENT) * by_loss + fedeba.ALIGNMENT * even
        after, report = engine.round(problem, state)
        np.testing.assert_allclose(after.server.last_step, expected, rtol=0, atol=1e-12)
        assert report.bytes_up == sum(upload.bytes for upload in uploads) * (1 if epochs == 1 else 2)


@pytest.mark.parametrize("normalise", ["item", "cohort"])
def test_clients_of_equal_losses_are_uniform_ones(normalise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fedeba, "TEMPERATURE", np.inf)
    for engine, problem, state in states(f"aggregation.normalise={normalise}"):
        plain, own = (some.round(problem, state)[0].server.V for some in (engine.engine, engine))
        np.testing.assert_allclose(own, plain, rtol=0, atol=1e-12)
