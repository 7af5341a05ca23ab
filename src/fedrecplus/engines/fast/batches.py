"""Models run over clients in batches of about as many rows, padded to the longest, on threads.

A batch's clients differ little in size, so little is padded. What a batch does never depends on how many threads there
are, and batches are added up in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING, Array
from fedrecplus.device import Device, Rows, every_item
from fedrecplus.engines.fast.chunks import chunks
from fedrecplus.engines.fast.rows import ROWS, PseudoRows, batches_of, device_batch, in_rows
from fedrecplus.engines.fast.weighing import Weighing, add_chunks, add_in_steps, add_rows, empty_sums
from fedrecplus.engines.interface import Clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model import Trained
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.rounds import check_weights
from fedrecplus.workers import on_threads

ROWS_OF_ALL = 4 * ROWS
"""where clients have rows of all items: fewer would be a client or two"""


class BatchedRound:
    """The local training of a round, batch by batch."""

    def __init__(self, problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows) -> None:
        self.problem, self.message, self.pseudo = problem, message, pseudo
        self.model, self.dtype = problem.config.model, message.V.dtype
        self.U = private.U.copy()
        self.rated = np.diff(problem.ratings.indptr)
        self.counts = self.rated + np.diff(pseudo.indptr)
        if self.model.ALL_ITEMS:
            self.counts = np.full(len(self.rated), len(message.V))

    def batches(self, clients: Clients) -> list[Clients]:
        """The clients of each batch."""
        return batches_of(clients, self.counts, self.rated, ROWS_OF_ALL if self.model.ALL_ITEMS else ROWS)

    def train(self, clients: Clients) -> tuple[Rows, Trained]:
        """The clients' rows, a line per client, and what training leaves; their new U is kept."""
        device = device_batch(self.problem, self.U, clients, self.dtype)
        if not self.model.ALL_ITEMS:
            rows = self._own_items(device)
        else:
            rows = every_item(device, len(self.message.V))
            rows = rows._replace(items=np.ascontiguousarray(rows.items))  # as kernels read it
        trained = self.model.local_training(device, rows, self.message)
        self.U[clients] = trained.U
        return rows, trained

    def weights(self, clients: Clients, rows: Rows, trained: Trained, weighing: Weighing) -> Array:
        """The clients' weights, by the rule."""
        rule: Any = self.problem.config.aggregation
        items = np.where(rows.rated, rows.items, NOTHING) if weighing.rated_rows_only else rows.items
        weights = np.asarray(rule.weight(items, trained.delta, self.message), dtype=np.float64)
        check_weights(weights, trained.delta, clients, rule)
        return weights

    def _own_items(self, device: Device) -> Rows:
        """Rated rows, and pseudo rows after them."""
        clients: Any = device.client
        if len(self.pseudo.items) == 0:
            return Rows(device.items, device.ratings, device.items >= 0)
        unrated = in_rows(self.pseudo.items, clients, self.pseudo.indptr, NOTHING)
        virtual = in_rows(self.pseudo.ratings, clients, self.pseudo.indptr)
        items = np.concatenate([device.items, unrated], axis=1)
        rated = items >= 0
        rated[:, device.items.shape[1] :] = False
        return Rows(items, np.concatenate([device.ratings, virtual], axis=1), rated)


def train(
    problem: Problem,
    private: PrivateState,
    message: Broadcast,
    pseudo: PseudoRows,
    weighing: Weighing,
    clients: Clients,
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients, weigh their updates and add them up; returns everybody's U besides."""
    batched = BatchedRound(problem, private, message, pseudo)
    V, runs, size = message.V, batched.batches(clients), batched.model.statistic_size

    def work(numbers: NDArray[np.int64]) -> tuple[Any, Any, float, Any]:
        total, per_item = empty_sums(V, weighing.in_steps), np.zeros(len(V))
        statistic, overall = np.zeros(size), 0.0
        for number in numbers.tolist():
            run = runs[number]
            rows, trained = batched.train(run)
            weights = batched.weights(run, rows, trained, weighing)
            overall += _add(run, rows, trained, weighing, weights, total, per_item)
            statistic += _weighted(trained.statistic, weights, weighing) if size else 0.0
        return total, per_item, overall, statistic

    sizes = np.array([batched.counts[run].sum() for run in runs])
    parts = on_threads(work, chunks(np.arange(len(runs)), sizes, len(V)))
    sums = add_chunks([part[:3] for part in parts], V, len(clients), weighing.in_steps)
    sums = replace(sums, statistic=np.sum([np.zeros(size), *(part[3] for part in parts)], axis=0))
    return sums, batched.U


def _add(
    clients: Clients, rows: Rows, trained: Trained, weighing: Weighing, weights: Array, total: Any, per_item: Any
) -> float:
    """Add a batch's weighted updates to tables; returns the sum of weights, and leaves those of the left out at 0."""
    if not weighing.in_steps:
        return float(add_rows(rows, trained.delta, weights, weighing.rated_rows_only, total, per_item))
    largest = np.abs(trained.statistic).max(axis=1, initial=0.0) if trained.statistic.size else np.zeros(len(weights))
    sizes = largest.astype(np.float64)
    return float(add_in_steps(clients, rows, trained.delta, sizes, weighing, weights, total, per_item))


def _weighted(statistic: NDArray[Any], weights: NDArray[Any], weighing: Weighing) -> NDArray[Any]:
    """Σ w s; clipped and in whole steps where sums are."""
    if not weighing.in_steps:
        return np.asarray(weights @ statistic)
    bound = weighing.largest_statistic
    values = np.nan_to_num(weights[:, None] * statistic.astype(np.float64), nan=0.0, posinf=bound, neginf=-bound)
    return np.asarray(np.rint(values.clip(-bound, bound) * weighing.statistic_scale).sum(axis=0))


def updates_of(batched: BatchedRound, clients: Clients) -> list[Upload]:
    """Train these clients and keep their updates apart, unweighed, in the order of clients."""

    def work(run: Clients) -> list[Upload]:
        rows, trained = batched.train(run)
        return [_upload(client, rows, trained, line) for line, client in enumerate(run.tolist())]

    uploads_of_runs = on_threads(work, batched.batches(clients))
    by_client = {upload.client: upload for uploads in uploads_of_runs for upload in uploads}
    return [by_client[client] for client in clients.tolist()]


def _upload(client: int, rows: Rows, trained: Trained, line: int) -> Upload:
    """One client's update, items ascending."""
    order = np.argsort(rows.items[line], kind="stable")
    order = order[rows.items[line][order] >= 0]
    statistic = trained.statistic[line] if trained.statistic.size else np.zeros(0)
    delta, items = trained.delta[line][order], rows.items[line][order]
    return Upload(client, items, delta.astype(np.float64), statistic=statistic.astype(np.float64))
