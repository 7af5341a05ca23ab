"""Timed rounds on ML-100K, and memory."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedrecplus import data
from fedrecplus.config import Config, assign, preset
from fedrecplus.data import Ratings, split
from fedrecplus.engines import Problem, engine_of

MF = ("model.rule=mf", "model.factors=20", "model.local_epochs=5", "model.learning_rate=0.1", "model.user_step=rated")
"""gradient steps as the paper has them, K=5 and d=20: what the presets were made of when they were first measured"""


@functools.cache
def fold() -> tuple[Ratings, Ratings]:
    """Fold 0 of ML-100K: training and test ratings."""
    return split(data.load("ml-100k"), 0)


def settings(name: str, *changes: str) -> Config:
    """A preset with changes."""
    return assign(preset(name), list(changes))


def seconds_per_round(problem: Problem, engine: str, rounds: int, warm_up: int = 2) -> Sequence[float]:
    """Wall-clock seconds of every round after the warm-up, in which kernels are compiled and pseudo items chosen."""
    runs = engine_of(assign(problem.config, [f"engine={engine}"]))
    state, taken = runs.start(problem), []
    for number in range(warm_up + rounds):
        started = time.perf_counter()
        state, _ = runs.round(problem, state)
        if number >= warm_up:
            taken.append(time.perf_counter() - started)
    return taken


def peak() -> float:
    """The most memory this process ever held, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e9


def least_and_median(seconds: Sequence[float]) -> dict[str, float]:
    """In ms. On a machine with other work the least is the engine's own time and the median that of the day."""
    return {"least": 1e3 * float(min(seconds)), "median": 1e3 * float(np.median(seconds))}
