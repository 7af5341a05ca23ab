"""Updates of a block of clients at a time: a model's kernels make them, one kernel for all models adds them up.

What comes after the update is the same for all models, and is compiled once instead of into each model's kernel. The
readable form is ``rounds/client.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import kernel
from fedrecplus.engines.fast.drawing import Clients
from fedrecplus.engines.fast.pseudo import KernelRows, PseudoRows
from fedrecplus.engines.fast.summing import add_up, empty_sums
from fedrecplus.engines.fast.weighing import Target, Weighing, add_in_steps, add_statistics, add_weighed, target_of
from fedrecplus.engines.problem import Problem
from fedrecplus.protocol import Sums, Upload

ROWS = 8_192
"""of a block, about: enough that calls cost little, and few enough to stay in a cache"""


class RowBlock(NamedTuple):
    """Some clients' rows, one client's after another's."""

    clients: Any
    starts: Any
    """client k's rows have the places ``starts[k]:starts[k + 1]``"""
    rated: Any
    """how many of them it has rated: these come first"""
    numbers: Any
    """items, by place"""
    ratings: Any
    """real and virtual, by place"""
    moved: Any
    """Δ, less the part of it that is the same for everybody, by place"""

    @property
    def counts(self) -> Any:
        """Rows of each client."""
        return np.diff(self.starts)


class BlockRound(ABC):
    """What a model's kernels of a round share."""

    statistic = 0
    """numbers in the statistic beside the rows"""

    def __init__(self, problem: Problem, pseudo: PseudoRows, left: NDArray[Any], last_step: NDArray[Any]) -> None:
        self.rows: KernelRows = pseudo.rows(problem)
        self.rated = np.diff(problem.ratings.indptr)
        self.counts = self.rated + np.diff(pseudo.indptr)
        self.left, self._last_step = left, last_step

    def target(self, how: Weighing) -> Target:
        """What distances are measured to, where updates are weighed by them."""
        return target_of(self.left, self._last_step if how.distances else None)

    def list_rows(self, block: RowBlock) -> None:
        """Write a block's items and ratings."""
        list_rows(block.clients, block.starts, self.rows, block.numbers, block.ratings)

    @abstractmethod
    def train(self, block: RowBlock) -> NDArray[Any] | None:
        """Write a block's moves; returns each client's vector of which its statistic is the outer product, if any."""


def sums_of(some: BlockRound, how: Weighing, clients: Clients) -> Sums:
    """The weighted sums of a round."""
    target = some.target(how)

    def work(part: Clients) -> tuple[Any, Any, float, Any]:
        total, per_item = empty_sums(some.left, how.in_steps), np.zeros(len(some.left))
        statistic, overall = np.zeros(some.statistic), 0.0
        for block in blocks(some, part):
            vectors, weights = some.train(block), np.zeros(len(block.clients))
            if how.in_steps:
                sizes = np.zeros(len(weights)) if vectors is None else np.abs(vectors).max(axis=1).astype(np.float64)
                overall += add_in_steps(block, sizes, how, target, total, per_item, weights)
            else:
                overall += add_weighed(block, how, target, total, per_item, weights)
            if vectors is not None:
                add_statistics(vectors, weights, how.statistic_scale, how.in_steps, how.largest_statistic, statistic)
        return total, per_item, overall, statistic

    parts = on_threads(work, chunks(clients, some.counts, len(some.left)))
    sums = add_up([part[:3] for part in parts], some.left, len(clients), how.in_steps)
    if some.statistic == 0:
        return sums
    statistic = np.zeros(some.statistic)
    for part in parts:
        statistic += part[3]
    return replace(sums, statistic=statistic)


def updates_of(some: BlockRound, clients: Clients) -> list[Upload]:
    """The clients' updates one by one, unweighed."""

    def work(part: Clients) -> list[Upload]:
        return [upload for block in blocks(some, part) for upload in _split(some, block)]

    return [upload for found in on_threads(work, chunks(clients, some.counts)) for upload in found]


def _split(some: BlockRound, block: RowBlock) -> Iterator[Upload]:
    vectors = some.train(block)
    for number, client in enumerate(block.clients.tolist()):
        places = slice(block.starts[number], block.starts[number + 1])
        order = np.argsort(block.numbers[places], kind="stable")
        items = block.numbers[places][order]
        upload = Upload(client, items, (block.moved[places][order] + some.left[items]).astype(np.float64))
        if vectors is not None:
            statistic = np.zeros(some.statistic)
            add_statistics(vectors[number : number + 1], np.ones(1), 1.0, False, 0.0, statistic)
            upload = replace(upload, statistic=statistic)
        yield upload


def blocks(some: BlockRound, clients: Clients) -> Iterator[RowBlock]:
    """A chunk's clients in blocks, whose arrays are those of the block before, too."""
    runs = [(run, starts_of(some.counts[run])) for run in runs_of(clients, some.counts)]
    most = max((int(starts[-1]) for _, starts in runs), default=0)
    left = some.left
    numbers, ratings = np.empty(most, np.int64), np.empty(most, left.dtype)
    moved = np.empty((most, left.shape[1]), left.dtype)
    for run, starts in runs:
        n = int(starts[-1])
        yield RowBlock(run, starts, some.rated[run], numbers[:n], ratings[:n], moved[:n])


def runs_of(clients: Clients, counts: NDArray[Any]) -> list[Clients]:
    """Clients in runs of about as many rows as a block has."""
    of_block = (np.cumsum(counts[clients]) - 1) // ROWS
    return [run for run in np.split(clients, np.flatnonzero(np.diff(of_block)) + 1) if len(run)]


def starts_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """The first place of each client's rows, and the one after the last."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@kernel
def list_rows(clients: Any, starts: Any, rows: Any, numbers: Any, ratings: Any) -> None:
    """The items and the ratings of clients' rated rows and of the pseudo rows after these."""
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings = rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings
    for k in range(len(clients)):
        client, place = clients[k], starts[k]
        for at in range(indptr[client], indptr[client + 1]):
            numbers[place] = items[at]
            ratings[place] = levels[codes[at]]
            place += 1
        for at in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            numbers[place] = pseudo_items[at]
            ratings[place] = virtual_ratings[at]
            place += 1
