"""Matrix factorisation in one place: what federation is measured against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from fedrecplus.arrays import kernel
from fedrecplus.config import Config
from fedrecplus.engines.interface import Engine
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.reference import ReferenceEngine
from fedrecplus.engines.state import RoundReport, SimulationState
from fedrecplus.errors import UserError
from fedrecplus.parts.model.mf import Mf
from fedrecplus.randomness import keys, subkey


class CentralEngine(ReferenceEngine):
    """Stochastic gradient descent over all ratings; an epoch takes the place of a round, and nobody sends anything."""

    def round(self, problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
        """One pass over all ratings, in an order that is new each time.

        After: Mnih and Salakhutdinov 2007 (PMF).
        """
        ratings, config, number = problem.ratings, problem.config, state.server.round
        model = cast(Mf, config.model)
        U, V = state.private.U.copy(), state.server.V.copy()
        order = np.argsort(keys(subkey(config.seed, "central", number), np.arange(len(ratings))), kind="stable")
        targets = ratings.standard_values - model.global_mean(problem.public)
        rate, decay, trained = model.local_rate(number), model.settings.regularisation, model.trained_columns()
        _descend(U, V, order, ratings.client_of_rating, ratings.items, targets, rate, decay, trained)
        server = replace(state.server, round=number + 1, V=V, last_step=V - state.server.V)
        report = RoundReport(int((np.diff(ratings.indptr) > 0).sum()), 0, 0)
        return SimulationState(server, replace(state.private, U=U)), report


def engine(config: Config) -> Engine:
    """The engine, for models that gradient steps train."""
    if not isinstance(config.model, Mf):
        raise UserError(
            f"engine = 'central' takes gradient steps on U, which model.rule = {config.model.rule!r} solves for",
            "set model.rule=mf or engine=fast",
        )
    return CentralEngine("float64")


@kernel
def _descend(
    U: Any,
    V: Any,
    order: Any,
    clients: Any,
    items: Any,
    targets: Any,
    rate: float,
    decay: float,
    trained: Any,
) -> None:
    columns = V.shape[1]
    for place in order:
        client, item = clients[place], items[place]
        e = targets[place] - U[client, columns]
        for column in range(columns):
            e -= U[client, column] * V[item, column]
        for column in range(columns):
            u, v = U[client, column], V[item, column]
            U[client, column] += rate * trained[column] * (e * v - decay * u)
            V[item, column] += rate * (e * u - decay * v)
        bias = U[client, columns]
        U[client, columns] += rate * trained[columns] * (e - decay * bias)
