"""Matrix factorisation in one place: what federation is measured against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.fast.compiling import kernel
from fedrecplus.gradients import step_sizes
from fedrecplus.model import prior
from fedrecplus.randomness import keys, subkey
from fedrecplus.simulation import Problem, RoundReport, SimulationState


def epoch(problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
    """One pass of stochastic gradient descent over all ratings, in an order that is new each time.

    An epoch takes the place of a round, so that everything after a round is the same with and without federation.
    Nobody sends anything. After: Mnih and Salakhutdinov 2007 (PMF).
    """
    ratings, config, number = problem.ratings, problem.config, state.server.round
    sizes = step_sizes(config, number)
    U, V = state.U.copy(), state.server.V.copy()
    order = np.argsort(keys(subkey(config.seed, "central", number), np.arange(len(ratings))), kind="stable")
    U_prior, V_prior = prior(config.model, problem.mean)
    targets = ratings.standard_values - problem.mean
    rates = (sizes.rate, sizes.decay_U, sizes.decay_V)
    _descend(U, V, order, ratings.client_of_rating, ratings.items, targets, rates, sizes.trained, U_prior, V_prior)
    server = replace(state.server, round=number + 1, V=V, last_step=V - state.server.V)
    return replace(state, server=server, U=U), RoundReport(int((np.diff(ratings.indptr) > 0).sum()), 0, 0)


@kernel
def _descend(
    U: Any,
    V: Any,
    order: Any,
    clients: Any,
    items: Any,
    targets: Any,
    rates: Any,
    trained: Any,
    U_prior: Any,
    V_prior: Any,
) -> None:
    rate, decay_U, decay_V = rates
    columns = V.shape[1]
    for place in order:
        client, item = clients[place], items[place]
        e = targets[place] - U[client, columns]
        for column in range(columns):
            e -= U[client, column] * V[item, column]
        for column in range(columns):
            u, v = U[client, column], V[item, column]
            U[client, column] += rate * trained[column] * (e * v - decay_U * (u - U_prior[column]))
            V[item, column] += rate * (e * u - decay_V * (v - V_prior[column]))
        bias = U[client, columns]
        U[client, columns] += rate * trained[columns] * (e - decay_U * (bias - U_prior[columns]))
