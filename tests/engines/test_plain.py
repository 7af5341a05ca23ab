"""Every engine equals plain loops over clients: Algorithm 1, and the solve of each model that solves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrecplus.engines import Problem, SimulationState, engine_of, message_of, prepare
from fedrecplus.protocol import Broadcast
from fedrecplus.testing import example_config, small_ratings
from tests.engines.plain import (
    PlainClient,
    choice_gradient,
    expected_gradient,
    gradient_of_all,
    gradient_steps,
    implicit_steps,
)

PSEUDO = ("pseudo_items.rule=random", "virtual_ratings.rule=user-average", "virtual_ratings.refresh=false")
MODELS = {
    "mf": ("model.rule=mf", "model.factors=3", "model.local_epochs=1"),
    "mf, rated alone, K=5": (
        "model.rule=mf", "model.factors=3", "model.local_epochs=5", "model.learning_rate=0.1", "model.user_step=rated",
    ),
    "biased-mf": ("model.rule=biased-mf", "model.factors=3", "model.local_epochs=2", "model.learning_rate=0.2"),
    "svdpp": ("model.rule=svdpp", "model.factors=3", "model.local_epochs=2", "model.learning_rate=0.2"),
    "svdpp, rated alone": ("model.rule=svdpp", "model.factors=3", "model.user_step=rated"),
    "reconstruction": ("model.rule=reconstruction", "model.factors=4"),
    "reconstruction over all": ("model.rule=reconstruction", "model.factors=4", "model.user_step=all"),
    "ials": ("model.rule=ials", "model.interaction_factors=5"),
    "joint": ("model.rule=joint", "model.factors=3", "model.interaction_factors=4"),
    "fcf": ("model.rule=fcf", "model.factors=4"),
}  # fmt: skip


def plain_clients(problem: Problem, state: SimulationState, U: Any) -> Iterator[tuple[int, PlainClient]]:
    """Everybody who has rated anything, with the pseudo rows that they keep."""
    for client in problem.able.tolist():
        items, ratings = problem.ratings.of(client)
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        own = [*items.tolist(), *state.private.pseudo_items[places].tolist()]
        given = [*ratings.tolist(), *state.private.virtual_ratings[places].tolist()]
        yield client, PlainClient(own, given, len(items), U[client])


def plain_update(client: PlainClient, problem: Problem, message: Broadcast) -> tuple[Any, dict[int, Any], Any]:
    """U, Δ by item, and the statistic."""
    model: Any = problem.config.model
    s, V, public = model.settings, message.V, message.public
    U, delta, statistic = client.U, {}, np.zeros(0)
    if model.rule in ("mf", "biased-mf"):
        biases = model.rule == "biased-mf"
        rate = s.learning_rate * s.learning_rate_decay**message.round
        U, delta = gradient_steps(client, V, s, rate, public.mean if biases else 0.0, biases)
    if model.rule == "svdpp":
        U, delta = implicit_steps(client, V, s, s.learning_rate * s.learning_rate_decay**message.round)
    if model.rule in ("reconstruction", "joint"):
        X = model.solved_columns(V, public)
        delta = expected_gradient(client, X, s, public.noise, public.popularity)
    if model.rule in ("ials", "joint"):
        W = V[:, -s.interaction_factors :]
        choices, statistic = choice_gradient(client, W, s, public.noise, public.mean, public.popularity)
        delta = {item: np.append(delta.get(item, []), move) for item, move in choices.items()}
    if model.rule == "fcf":
        delta = gradient_of_all(client, V, s)
    return U, delta, statistic


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("model", MODELS)
def test_an_engine_gives_what_plain_loops_over_clients_give(model: str, engine: str) -> None:
    assert_plain(model, engine)


def assert_plain(model: str, engine: str, clients: int = 40) -> None:
    """The second round of an engine: its sums and everybody's U."""
    config = replace(example_config(*MODELS[model], *PSEUDO), engine=engine, precision="float64")
    problem = prepare(small_ratings(clients=clients), config)
    runs = engine_of(config)
    state, _ = runs.round(problem, runs.start(problem))
    U = np.array(state.private.U)
    message = message_of(problem, state)
    sums, private, _ = runs.sums(problem, state.private, message, problem.able)
    total, weights, statistic = np.zeros(message.V.shape), np.zeros(len(message.V)), 0.0
    for number, client in plain_clients(problem, state, U):
        own, delta, more = plain_update(client, problem, message)
        np.testing.assert_allclose(np.asarray(private.U)[number], own, rtol=0, atol=1e-10)
        statistic = statistic + more
        for item, move in delta.items():
            total[item] += move
            weights[item] += 1.0
    np.testing.assert_allclose(sums.total, total, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(sums.weights, weights)
    np.testing.assert_allclose(sums.statistic, statistic, rtol=0, atol=1e-10)
    assert np.abs(total).max() > 1e-3
