"""Everybody's rows: rated ones by place, pseudo rows beside them, and batches of clients padded to the longest.

``engines/state.py`` has the same of one client, ``device_of``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING, kernel
from fedrecplus.device import Device
from fedrecplus.engines.interface import Clients
from fedrecplus.engines.problem import Problem
from fedrecplus.workers import on_threads

ROWS = 8_192
"""of a batch, about: enough that calls cost little, and few enough to stay in a cache"""
GROWTH, _FEW = 1.25, 4
"""of a batch's longest client over its shortest: padding costs as much as rows do"""


class KernelRows(NamedTuple):
    """Everybody's rated and pseudo rows, as kernels take them."""

    indptr: Any
    items: Any
    codes: Any
    levels: Any
    pseudo_indptr: Any
    pseudo_items: Any
    virtual_ratings: Any


@dataclass(frozen=True)
class PseudoRows:
    """Pseudo items and virtual ratings of all clients, by place."""

    indptr: NDArray[np.int64]
    items: NDArray[Any]
    ratings: NDArray[Any]
    levels: NDArray[Any]
    """level number → rating on the standard scale"""

    def rows(self, problem: Problem) -> KernelRows:
        """Everybody's rated and pseudo rows, for kernels."""
        ratings = problem.ratings
        rated = (ratings.indptr, ratings.items, ratings.codes, self.levels)
        return KernelRows(*rated, self.indptr, self.items, self.ratings)


def batches_of(
    clients: Clients, counts: NDArray[Any], rated: NDArray[Any], rows: int = ROWS, growth: float = GROWTH
) -> list[Clients]:
    """Clients in runs of similar size, by the number of their rows and, where these are as many, of rated ones."""
    order = clients[np.lexsort([rated[clients], counts[clients]])]
    sizes, runs, first = counts[order], [], 0
    while first < len(order):
        alike = int(np.searchsorted(sizes, growth * sizes[first] + _FEW, side="right"))
        end = min(alike, first + max(1, rows // max(1, int(sizes[alike - 1]))))
        runs.append(order[first:end])
        first = end
    return runs


def in_rows(values: NDArray[Any], clients: Clients, indptr: NDArray[np.int64], none: Any = 0) -> NDArray[Any]:
    """Something of every rating, a line for each client; ``none`` beyond a client's last."""
    dtype = np.int64 if values.dtype.kind in "iu" else values.dtype
    rows = np.full((len(clients), longest(clients, indptr)), none, dtype)
    lay_out(clients, indptr, values, rows)
    return rows


def longest(clients: Clients, indptr: NDArray[np.int64]) -> int:
    """Rows of the client that has most."""
    return int((indptr[clients + 1] - indptr[clients]).max(initial=0))


@kernel
def lay_out(clients: Any, indptr: Any, values: Any, rows: Any) -> None:
    """Copy what clients have, by place, to the beginnings of their lines."""
    for line in range(len(clients)):
        first = indptr[clients[line]]
        for at in range(first, indptr[clients[line] + 1]):
            rows[line, at - first] = values[at]


@kernel
def put_back(clients: Any, indptr: Any, rows: Any, values: Any) -> None:
    """Copy the beginnings of clients' lines to their places."""
    for line in range(len(clients)):
        first = indptr[clients[line]]
        for at in range(first, indptr[clients[line] + 1]):
            values[at] = rows[line, at - first]


Rated = tuple[NDArray[np.int64], NDArray[Any]]
"""items and ratings, a line for each client"""


def rated_rows(problem: Problem, clients: Clients, dtype: Any) -> Rated:
    """Items and ratings of what clients have rated."""
    known, width = problem.ratings, longest(clients, problem.ratings.indptr)
    items, ratings = np.empty((len(clients), width), np.int64), np.empty((len(clients), width), dtype)
    lay_out_ratings(clients, known.indptr, known.items, known.codes, problem.levels, items, ratings)
    return items, ratings


@kernel
def lay_out_ratings(clients: Any, indptr: Any, items: Any, codes: Any, levels: Any, rated: Any, ratings: Any) -> None:
    """Copy what clients have rated to the beginnings of their lines, item −1 and rating 0 after the last."""
    for line in range(len(clients)):
        first, n = indptr[clients[line]], indptr[clients[line] + 1] - indptr[clients[line]]
        for place in range(rated.shape[1]):
            rated[line, place] = items[first + place] if place < n else -1
            ratings[line, place] = levels[codes[first + place]] if place < n else 0.0


def device_batch(problem: Problem, U: NDArray[Any], clients: Clients, dtype: Any, rated: Rated | None = None) -> Device:
    """What these clients' devices hold, without the pseudo items that they keep; ``rated`` is known or laid out."""
    numbers: Any = clients
    items, ratings = rated_rows(problem, clients, dtype) if rated is None else rated
    secrets: Any = problem.secrets[clients]
    ages = None if problem.ages is None else in_rows(problem.ages, clients, problem.ratings.indptr)
    device = Device(numbers, items, ratings, problem.ratings.scale.standard_step, U[clients], secrets, ages=ages)
    if problem.tested is None:
        return device
    return replace(device, tested=in_rows(problem.tested.items, clients, problem.tested.indptr, NOTHING))


def for_rated(problem: Problem, dtype: Any, solve: Callable[[Clients, Any, Any], None]) -> None:
    """Call with clients, their rated items and ratings, batch by batch, for everybody who has rated anything."""
    counts = np.diff(problem.ratings.indptr)
    runs = batches_of(problem.able, counts, counts)
    on_threads(lambda run: solve(run, *rated_rows(problem, run, dtype)), runs)


def items_of(problem: Problem, pseudo: PseudoRows, client: int) -> NDArray[np.int64]:
    """A client's rated and pseudo items together, ascending; all items, where the model uploads all."""
    if problem.config.model.ALL_ITEMS:
        return np.arange(problem.ratings.item_count)
    rated = problem.ratings.items[problem.ratings.indptr[client] : problem.ratings.indptr[client + 1]]
    unrated = pseudo.items[pseudo.indptr[client] : pseudo.indptr[client + 1]]
    return np.sort(np.concatenate([rated.astype(np.int64), unrated.astype(np.int64)]))
