"""Rounds in either engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedrecplus import fast, simulation
from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings

ENGINES: dict[str, Callable[..., Any]] = {"reference": simulation.simulate_round, "fast": fast.simulate_round}


def run_rounds(
    ratings: Ratings, config: Config, engine: str, rounds: int, dtype: Any = np.float64
) -> list[simulation.SimulationState]:
    """The states after each round."""
    problem = simulation.prepare(ratings, config)
    state = simulation.start(problem, dtype)
    states = []
    for _ in range(rounds):
        state, _ = ENGINES[engine](problem, state)
        states.append(state)
    return states
