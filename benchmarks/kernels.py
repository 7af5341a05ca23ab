"""Where the time of a round goes: processor time per kernel, on one thread, so that other work on the machine counts
little."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from fedrecplus.fast import engine, filling, grouping, prediction, pseudo, selection

from benchmarks.engines import SAME
from benchmarks.line import Line
from benchmarks.rounds import fold, settings
from fedrecplus import fast, simulation

KERNELS = [
    (engine, "train_clients"),
    (filling, "hybrid"),
    (filling, "from_neighbours"),
    (filling, "drawn"),
    (filling, "put_on_scale"),
    (grouping, "whole_groups"),
    (selection, "draw"),
    (selection, "top_similar"),
    (selection, "merge_neighbours"),
    (pseudo, "neighbour_lists"),
    (pseudo, "likeness_table"),
    (pseudo, "weight_table"),
    (prediction, "refit_clients"),
]


def measure() -> list[Line]:
    """A line per training: the least processor time of a round, and what its kernels took. The refit is not part."""
    return [
        _line("fedmf, K=5, d=20", settings("fedmf", *SAME), 20),
        _line("fedrec+, K=5, d=20", settings("fedrec+", *SAME), 20),
        _line("fedmf", settings("fedmf"), 20),
        _line("fedrec+", settings("fedrec+"), 20),
        _line("fedrec-hf", settings("fedrec-hf", "virtual_ratings.predict_after=0"), 20),
        _line("fedrec+paper", settings("fedrec+paper"), 5),
    ]


def _line(name: str, config: Any, rounds: int) -> Line:
    problem = simulation.prepare(fold()[0], config)
    state = simulation.start(problem, np.float32)
    least, of_kernels = float("inf"), {}
    with patch.dict("os.environ", {"FEDRECPLUS_THREADS": "1"}):
        for _ in range(2):
            state, _ = fast.simulate_round(problem, state)
            fast.prediction_factors(problem, state)
        for _ in range(rounds):
            taken: dict[str, float] = {}
            with _timed(taken):
                started = time.thread_time()
                state, _ = fast.simulate_round(problem, state)
                whole = time.thread_time() - started
                fast.prediction_factors(problem, state)
            if whole < least:
                least, of_kernels = whole, taken
    parts = {kernel: 1e3 * seconds for kernel, seconds in of_kernels.items()}
    return Line(f"processor ms per round, {name}", 1e3 * least, "ms", "", parts)


class _timed:
    """While it lasts, kernels add what they take to a dictionary."""

    def __init__(self, taken: dict[str, float]) -> None:
        there = [(module, name) for module, name in KERNELS if hasattr(module, name)]
        self._patches = [
            patch.object(module, name, _watch(getattr(module, name), name, taken)) for module, name in there
        ]

    def __enter__(self) -> None:
        for each in self._patches:
            each.start()

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()


def _watch(function: Callable[..., Any], name: str, taken: dict[str, float]) -> Callable[..., Any]:
    def watched(*arguments: Any) -> Any:
        started = time.thread_time()
        result = function(*arguments)
        taken[name] = taken.get(name, 0.0) + time.thread_time() - started
        return result

    return watched
