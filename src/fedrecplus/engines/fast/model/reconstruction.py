"""Kernels of ``parts/model/reconstruction.py``: solve for clients' weights, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel, inner, kernel
from fedrecplus.engines.fast.model import _updates
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.selecting import Clients, Fill, Filling
from fedrecplus.engines.fast.summing import add_up, split_uploads
from fedrecplus.engines.fast.weighing import Weighing, target_of, weight_at
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model import reconstruction
from fedrecplus.parts.model.reconstruction import Settings
from fedrecplus.protocol import Broadcast, Sums, Upload

_covariance_gap = _updates.covariance_gap
_add_covariance = _updates.add_covariance
_ROWS = 4
"""rows that go into the Gram matrix at a time: a number of it is read and written once for all of them"""


class Ridge(NamedTuple):
    """Regularisation of the weights."""

    per_rating: float
    in_all: float


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; nothing is kept on devices."""
    some = _Round(problem, message, pseudo)
    W = some.weights(clients)

    def work(part: Clients) -> tuple[Any, Any, Any, float]:
        V = message.V
        total, per_item, covariance = np.zeros_like(V), np.zeros(len(V)), np.zeros_like(message.last_covariance)
        return total, per_item, covariance, some.add(part, W, how, total, per_item, covariance)

    return add_up(on_threads(work, some.chunks(clients)), some.left, message, len(clients)), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    some = _Round(problem, message, pseudo)
    W = some.weights(clients)

    def work(part: Clients) -> list[Upload]:
        per_item, covariance = np.zeros(len(message.V)), np.zeros_like(message.last_covariance)

        def one(client: Clients, total: NDArray[Any]) -> None:
            some.add(client, W, Weighing(), total, per_item, covariance)

        return split_uploads(problem, pseudo, part, some.left, one)

    return [upload for found in on_threads(work, some.chunks(clients)) for upload in found], private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights, solved over its rated rows."""
    ratings, options = problem.ratings, problem.config.model.options
    W = np.zeros((ratings.clients, X.shape[1]), dtype=X.dtype)
    W[:, 0] = 1.0
    rows = np.diff(ratings.indptr)
    levels, ridge = problem.levels.astype(X.dtype), _ridge(problem, options)
    nobody = np.zeros(ratings.clients + 1, dtype=np.int64)
    nothing, unrated = np.zeros(0, dtype=X.dtype), np.zeros(0, dtype=ratings.items.dtype)

    def work(part: Clients) -> None:
        solve_clients(part, ratings.indptr, ratings.items, ratings.codes, levels, nobody, unrated, nothing, X, ridge, W)

    on_threads(work, chunks(np.flatnonzero(rows > 0), rows))
    return W


def predictor(some: Filling, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows; these serve the round's training too."""
    problem, options = some.problem, some.problem.config.model.options
    X = _item_columns(some.message, options)
    ratings, ridge = problem.ratings, _ridge(problem, options)
    W = some.solved["W"] = np.zeros((ratings.clients, X.shape[1]), dtype=X.dtype)
    nobody = np.zeros(ratings.clients + 1, dtype=np.int64)
    nothing, unrated = np.zeros(0, dtype=X.dtype), np.zeros(0, dtype=ratings.items.dtype)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solve_clients(clients, *some.rated, nobody, unrated, nothing, X, ridge, W)
        predict_clients(clients, some.indptr, items, X, W, out)

    return fill


class _Round:
    """What the kernels of a round share."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        self.problem, self.message, self.pseudo = problem, message, pseudo
        options: Settings = problem.config.model.options
        self.options, self.dtype = options, message.V.dtype
        self.X = _item_columns(message, options)
        shrink = options.learning_rate * options.regularisation
        self.left = (-shrink * message.V.astype(np.float64)).astype(self.dtype)
        self.target = target_of(self.left, message.last_step, message.last_covariance)

    def chunks(self, clients: Clients) -> list[Clients]:
        return chunks(clients, np.diff(self.problem.ratings.indptr) + np.diff(self.pseudo.indptr))

    def rows(self) -> tuple[Any, ...]:
        ratings, pseudo = self.problem.ratings, self.pseudo
        return (
            ratings.indptr, ratings.items, ratings.codes, pseudo.levels, pseudo.indptr, pseudo.items, pseudo.ratings
        )  # fmt: skip

    def weights(self, clients: Clients) -> NDArray[Any]:
        """The weights that updates come from."""
        over_rated = self.options.solve_over == "rated"
        if over_rated and "W" in self.pseudo.solved:
            return self.pseudo.solved["W"]
        W = np.zeros((self.problem.ratings.clients, self.X.shape[1]), dtype=self.dtype)
        ridge, rows = _ridge(self.problem, self.options), self.rows()
        if over_rated:
            rows = (*rows[:4], np.zeros(len(W) + 1, dtype=np.int64), *rows[5:])

        def work(part: Clients) -> None:
            solve_clients(part, *rows, self.X, ridge, W)

        on_threads(work, self.chunks(clients))
        return W

    def add(self, clients: Clients, W: Any, how: Weighing, total: Any, per_item: Any, covariance: Any) -> float:
        """Weigh the updates of some clients and add them to the sums; returns the sum of weights."""
        counts = np.diff(self.problem.ratings.indptr)[clients] + np.diff(self.pseudo.indptr)[clients]
        rate = self.dtype.type(self.options.learning_rate)
        return float(
            add_clients(
                clients, *self.rows(), self.X, W, rate, how, self.target, int(counts.max()), total, per_item, covariance
            )
        )


def _ridge(problem: Problem, options: Settings) -> Ridge:
    noise = problem.public.noise
    return Ridge(noise * options.user_regularisation, noise * options.user_prior)


def _item_columns(message: Broadcast, options: Settings) -> NDArray[Any]:
    return reconstruction.item_columns(message.V, message.public, options).astype(message.V.dtype, copy=False)


@exact_kernel
def solve_clients(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    virtual_ratings: Any,
    X: Any,
    ridge: Any,
    W: Any,
) -> None:
    """Ridge regressions of clients' ratings on their rows of X, by Cholesky; the first column is the baseline.

    Sums keep the order of the code, so that it never depends on where memory was free how they are rounded.
    """
    size = X.shape[1] - 1
    gram, moment = np.empty((size, size), X.dtype), np.empty(size, X.dtype)
    rows, targets = np.zeros((np.int64(4), size), X.dtype), np.zeros(np.int64(4), X.dtype)
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first = pseudo_indptr[client]
        n = rated + pseudo_indptr[client + 1] - pseudo_first
        for a in range(size):
            moment[a] = 0
            for b in range(a, size):
                gram[a, b] = 0
        for group in range(0, n, 4):
            for number in range(np.int64(4)):
                j = group + number
                if j < rated:
                    row = np.int64(items[first + j])
                    targets[number] = levels[codes[first + j]] - X[row, 0]
                elif j < n:
                    row = np.int64(pseudo_items[pseudo_first + j - rated])
                    targets[number] = virtual_ratings[pseudo_first + j - rated] - X[row, 0]
                else:
                    row = np.int64(-1)
                    targets[number] = 0
                for c in range(np.uint64(size)):
                    rows[number, c] = X[row, c + np.uint64(1)] if row >= 0 else X.dtype.type(0)
            _add_rows(rows, targets, gram, moment)
        decay = max(ridge.per_rating * n + ridge.in_all, 1e-9)
        for a in range(size):
            gram[a, a] += decay
        _solve(gram, moment)
        W[client, 0] = 1
        for c in range(size):
            W[client, c + 1] = moment[c]


@inner
def _add_rows(rows: Any, targets: Any, gram: Any, moment: Any) -> None:
    """Add four rows to the upper triangle of XᵀX and to Xᵀy."""
    row0, row1, row2, row3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
    for a in range(np.uint64(len(moment))):
        x0, x1, x2, x3 = rows[row0, a], rows[row1, a], rows[row2, a], rows[row3, a]
        moment[a] += targets[row0] * x0 + targets[row1] * x1 + targets[row2] * x2 + targets[row3] * x3
        for b in range(a, np.uint64(len(moment))):
            gram[a, b] += x0 * rows[row0, b] + x1 * rows[row1, b] + x2 * rows[row2, b] + x3 * rows[row3, b]


@inner
def _solve(gram: Any, moment: Any) -> None:
    """Solve in place, with the upper triangle of a positive definite matrix; loops run along its rows."""
    size, one = np.uint64(len(moment)), np.uint64(1)
    for k in range(size):
        pivot = np.sqrt(gram[k, k])
        for b in range(k, size):
            gram[k, b] /= pivot
        moment[k] /= pivot
        for a in range(k + one, size):
            factor = gram[k, a]
            moment[a] -= factor * moment[k]
            for b in range(a, size):
                gram[a, b] -= factor * gram[k, b]
    for back in range(size):
        last = size - one - back
        for c in range(last + one, size):
            moment[last] -= gram[last, c] * moment[c]
        moment[last] /= gram[last, last]


@kernel
def predict_clients(clients: Any, pseudo_indptr: Any, pseudo_items: Any, X: Any, W: Any, out: Any) -> None:
    """X·w for the clients' pseudo items."""
    for client in clients:
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            row, total = np.int64(pseudo_items[place]), X.dtype.type(0)
            for c in range(np.uint64(X.shape[1])):
                total += X[row, c] * W[client, c]
            out[place] = total


@kernel
def add_clients(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    virtual_ratings: Any,
    X: Any,
    W: Any,
    rate: Any,
    how: Any,
    target: Any,
    largest: int,
    total: Any,
    per_item: Any,
    covariance: Any,
) -> float:
    """Residuals of clients, their weights, and the sums of w η_L e_i w_V; ``left`` is the rest of every update."""
    left, apart, apart_sizes, step_sizes = target.left, target.apart, target.apart_sizes, target.step_sizes
    last_covariance, whole_step, whole_covariance = target.covariance, target.whole_step, target.whole_covariance
    columns, width = np.uint64(X.shape[1]), np.uint64(total.shape[1])
    skip = columns - width
    numbers, e, own = np.empty(largest, np.int64), np.empty(largest, X.dtype), np.empty(total.shape[1], X.dtype)
    moved = np.empty((largest if how.diagonal else 0, total.shape[1]), X.dtype)
    all_weights = 0.0
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first = pseudo_indptr[client]
        n = rated + pseudo_indptr[client + 1] - pseudo_first
        for j in range(n):
            if j < rated:
                numbers[j] = items[first + j]
                e[j] = levels[codes[first + j]]
            else:
                numbers[j] = pseudo_items[pseudo_first + j - rated]
                e[j] = virtual_ratings[pseudo_first + j - rated]
        size = X.dtype.type(0)
        for c in range(width):
            own[c] = rate * W[client, skip + c]
            size += own[c] * own[c]
        for j in range(n):
            row, predicted = np.uint64(numbers[j]), X.dtype.type(0)
            for c in range(columns):
                predicted += X[row, c] * W[client, c]
            e[j] -= predicted
            if how.rated_rows_only and j >= rated:
                e[j] = 0
        weight = 1.0
        if how.diagonal:
            for j in range(n):
                for c in range(width):
                    moved[j, c] = e[j] * own[c]
        if how.distances:
            distance, own_step, own_covariance = 0.0, 0.0, 0.0
            for j in range(n):
                row, along = np.uint64(numbers[j]), X.dtype.type(0)
                for c in range(width):
                    along += own[c] * apart[row, c]
                distance += apart_sizes[row] + e[j] * (along + along + e[j] * size)
                own_step += step_sizes[row]
            if how.diagonal:
                gap, own_covariance = _covariance_gap(left, moved, last_covariance, numbers, n, n)
                distance += gap
            weight = weight_at(distance, own_step, own_covariance, n, how, whole_step, whole_covariance)
        all_weights += weight
        if how.diagonal:
            _add_covariance(numbers, n, n, left, moved, covariance)
        for j in range(rated if how.rated_rows_only else n):
            row, scaled = np.uint64(numbers[j]), X.dtype.type(weight) * e[j]
            per_item[row] += weight
            for c in range(width):
                total[row, c] += scaled * own[c]
    return all_weights
