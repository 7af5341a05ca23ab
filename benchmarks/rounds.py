"""Timed rounds on ML-100K."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fedrecplus.simulation import Problem, SimulationState

from fedrecplus import data, simulation
from fedrecplus.config import Config, assign, preset
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.splits import split

Round = Callable[[Problem, SimulationState], tuple[SimulationState, Any]]


@functools.cache
def fold() -> tuple[Ratings, Ratings]:
    """Fold 0 of ML-100K: training and test ratings."""
    return split(data.load("ml-100k"), 0)


def settings(name: str, *changes: str) -> Config:
    """A preset with changes."""
    return assign(preset(name), list(changes))


def seconds_per_round(
    simulate_round: Round, problem: Problem, dtype: Any, rounds: int, warm_up: int = 2
) -> Sequence[float]:
    """Wall-clock seconds of every round after the warm-up, in which kernels are compiled and pseudo items chosen."""
    state = simulation.start(problem, dtype)
    taken = []
    for number in range(warm_up + rounds):
        started = time.perf_counter()
        state, _ = simulate_round(problem, state)
        if number >= warm_up:
            taken.append(time.perf_counter() - started)
    return taken


def least_and_median(seconds: Sequence[float]) -> dict[str, float]:
    """In ms. On a machine with other work the least is the engine's own time and the median that of the day."""
    return {"least": 1e3 * float(min(seconds)), "median": 1e3 * float(np.median(seconds))}
