"""Bytes that local training moves, over what a plain copy moves in the same time, on one core.

A client's rows live in the first caches, so the copy to compare with is one of a block of that size; the copy through
memory is shown beside it. Counts are read off ``_columns.py``, ``round.py`` and
``_updates.py`` of ``engines/fast/fused/``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.line import Line
from benchmarks.rounds import MF, fold, settings
from fedrecplus.engines import Problem, engine_of, message_of, prepare
from fedrecplus.engines.fast.fused import round as fused
from fedrecplus.engines.fast.pseudo import pseudo_rows
from fedrecplus.engines.fast.weighing import Weighing

NUMBER = 4  # bytes


def measure() -> list[Line]:
    """FedMF's local training, K=5, d=20, on one thread."""
    problem = prepare(fold()[0], settings("fedmf", *MF))
    factors, epochs = problem.config.model.settings.factors, problem.config.model.settings.local_epochs
    rows = len(problem.ratings)
    moved = rows * (epochs * bytes_per_row_epoch(factors, epochs) + bytes_per_row(factors))
    flops = rows * epochs * flops_per_row_epoch(factors)
    seconds = _training_seconds(problem)
    block = NUMBER * factors * rows // problem.ratings.clients
    near, far = _copy_bandwidth(block), _copy_bandwidth(256 << 20)
    parts = {
        "GB/s": moved / seconds / 1e9,
        f"copy of {block / 1024:.1f} KB GB/s": near / 1e9,
        "copy through memory GB/s": far / 1e9,
        "over that": moved / seconds / far,
        "GFlop/s": flops / seconds / 1e9,
        "ms": 1e3 * seconds,
    }
    return [Line("bytes moved over copy bandwidth, local training", moved / seconds / near, "", "≥ .6", parts)]


def bytes_per_row_epoch(d: int, epochs: int) -> float:
    """A pass of ``products``, one of ``pull_on_user``, and errors twice, with the errors of half the other epochs."""
    products = d + 2 * d / 4  # the table; sums read and written per four columns
    pull_on_user = d + 1 + d / 4
    errors = 2 * (3 + 3 * (epochs - 1) / 2) + 2 * (epochs - 1) / 2
    return NUMBER * (products + pull_on_user + errors)


def bytes_per_row(d: int) -> float:
    """Once a round: ``gather`` reads and writes, ``products`` reads, ``add`` reads and writes the sum."""
    return NUMBER * (2 * d + d + 2 * d)


def flops_per_row_epoch(d: int) -> float:
    """2d for ``products``, ``pull_on_user`` and ``add`` each."""
    return 2 * d + 2 * d + 2 * d


def _training_seconds(problem: Problem) -> float:
    state, clients = engine_of(problem.config).start(problem), problem.cohort(0)
    message = message_of(problem, state, clients)
    private, pseudo = pseudo_rows(problem, state.private, message, clients)
    V, U, steps, rows = message.V, private.U.copy(), fused.steps_of(problem, message), pseudo.rows(problem)
    total, per_item, largest = np.zeros_like(V), np.zeros(len(V)), int(np.diff(problem.ratings.indptr).max())
    scratch, target = fused.EpochScratch.of(V, steps, largest), fused.FusedTarget.of(V[:0], V[:0])
    tables = (V, U, np.empty((largest, V.shape[1]), V.dtype), total, per_item)
    return _least(lambda: fused.train_clients(clients, rows, scratch, steps, Weighing(), target, *tables), 100)


def _copy_bandwidth(size: int) -> float:
    """Bytes read and written per second when a block of this size is copied again and again."""
    source, target = np.ones(size // NUMBER, np.float32), np.zeros(size // NUMBER, np.float32)
    times = max(1, (64 << 20) // size)
    return 2.0 * size * times / _least(lambda: _copy(source, target, times), 10)


@numba.njit
def _copy(source: Any, target: Any, times: int) -> None:
    for _ in range(times):
        for place in range(np.uint64(len(source))):
            target[place] = source[place]
        source, target = target, source


def _least(work: Callable[[], Any], times: int) -> float:
    work()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)
