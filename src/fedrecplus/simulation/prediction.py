"""The factors that predictions come from, for every simulated client."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.rounds.refit import Expected, expected, refit, widened
from fedrecplus.rounds.refit import prediction_table as table_of
from fedrecplus.simulation.problem import Problem
from fedrecplus.simulation.state import SimulationState


def prediction_factors(problem: Problem, state: SimulationState) -> NDArray[Any]:
    """Each client's own U or its private refit, as the settings say; a client without ratings keeps its start."""
    if problem.config.prediction.factors == "own":
        return state.U
    V = prediction_table(problem, state).astype(np.float64)
    factors = widened(state.U, V, problem.config)
    start = expected_of(problem, V)
    for client in np.flatnonzero(np.diff(problem.ratings.indptr) > 0):
        items, ratings = problem.ratings.of(int(client))
        factors[client] = refit(V[items], ratings, problem.mean, problem.config, start)
    return factors


def prediction_table(problem: Problem, state: SimulationState) -> NDArray[Any]:
    """The item table that predictions come from, in the state's own precision."""
    return table_of(state.server.V, problem.public, _mean_rating(problem), problem.mean, problem.config)


def expected_of(problem: Problem, V: NDArray[Any]) -> Expected:
    """What all refits shrink to."""
    return expected(V, problem.public.popularity, _mean_rating(problem), problem.mean, problem.config)


def _mean_rating(problem: Problem) -> float:
    scale = problem.ratings.scale
    return float(scale.standardise(np.array(scale.low + scale.step * problem.ratings.codes.mean())))
