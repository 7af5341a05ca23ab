"""Kernels of ``parts/model/reconstruction.py``: solve for clients' weights, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel, inner, kernel
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.pseudo import PseudoRows, Rows
from fedrecplus.engines.fast.summing import add_up, split_uploads
from fedrecplus.engines.fast.weighing import Weighing, target_of, weight_at
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.reconstruction import Settings, item_columns
from fedrecplus.protocol import Broadcast, Sums, Upload


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; nothing is kept on devices."""
    some = _Round(problem, message, pseudo, clients)

    def work(part: Clients) -> tuple[Any, Any, float]:
        total, per_item = np.zeros_like(message.V), np.zeros(len(message.V))
        return total, per_item, some.add(part, how, total, per_item)

    return add_up(on_threads(work, some.chunks(clients)), some.left, len(clients)), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    some = _Round(problem, message, pseudo, clients)

    def work(part: Clients) -> list[Upload]:
        per_item = np.zeros(len(message.V))

        def one(client: Clients, total: NDArray[Any]) -> None:
            some.add(client, Weighing(), total, per_item)

        return split_uploads(problem, pseudo, part, some.left, one)

    return [upload for found in on_threads(work, some.chunks(clients)) for upload in found], private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights, solved over its rated rows."""
    rated = np.flatnonzero(np.diff(problem.ratings.indptr) > 0)
    return solve(problem, X, _rated_rows(problem, X.dtype), rated)


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows; these serve the round's training too."""
    problem, options = some.problem, some.problem.config.model.options
    X = _columns(some.message, options)
    rows, ridge = _rated_rows(problem, X.dtype), _ridge(problem, options)
    W = some.solved["W"] = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solve_clients(clients, rows, X, ridge, W)
        predict_clients(clients, problem.pseudo_indptr, items, X, W, out)

    return fill


def solve(problem: Problem, X: NDArray[Any], rows: Rows, clients: Clients) -> NDArray[Any]:
    """The weights of some clients, a row for everybody."""
    W = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    W[:, 0] = 1.0
    ridge = _ridge(problem, problem.config.model.options)

    def work(part: Clients) -> None:
        solve_clients(part, rows, X, ridge, W)

    on_threads(work, chunks(clients, np.diff(rows.indptr) + np.diff(rows.pseudo_indptr)))
    return W


class _Round:
    """What the kernels of a round share."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows, clients: Clients) -> None:
        options: Settings = problem.config.model.options
        self.X, self.rows = _columns(message, options), pseudo.rows(problem)
        self.counts = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
        self.rate = message.V.dtype.type(options.learning_rate)
        shrink = options.learning_rate * options.regularisation
        self.left = (-shrink * message.V.astype(np.float64)).astype(message.V.dtype)
        self.target = target_of(self.left, message.last_step)
        over_rated = options.solve_over == "rated"
        if over_rated and "W" in pseudo.solved:
            self.W = pseudo.solved["W"]
        else:
            self.W = solve(problem, self.X, _rated_rows(problem, self.X.dtype) if over_rated else self.rows, clients)

    def chunks(self, clients: Clients) -> list[Clients]:
        return chunks(clients, self.counts)

    def add(self, clients: Clients, how: Weighing, total: Any, per_item: Any) -> float:
        """Weigh the updates of some clients and add them to the sums; returns the sum of weights."""
        largest = int(self.counts[clients].max())
        return float(
            add_clients(clients, self.rows, self.X, self.W, self.rate, how, self.target, largest, total, per_item)
        )


def _ridge(problem: Problem, options: Settings) -> tuple[float, float]:
    noise = problem.public.noise
    return noise * options.user_regularisation, noise * options.user_prior


def _columns(message: Broadcast, options: Settings) -> NDArray[Any]:
    return item_columns(message.V, message.public, options).astype(message.V.dtype, copy=False)


def _rated_rows(problem: Problem, dtype: Any) -> Rows:
    """Everybody's rated rows, and no pseudo rows."""
    ratings, nobody = problem.ratings, np.zeros(problem.ratings.clients + 1, dtype=np.int64)
    levels, unrated = problem.levels.astype(dtype), np.zeros(0, dtype=ratings.items.dtype)
    return Rows(ratings.indptr, ratings.items, ratings.codes, levels, nobody, unrated, np.zeros(0, dtype=dtype))


@exact_kernel
def solve_clients(clients: Any, rows: Any, X: Any, ridge: Any, W: Any) -> None:
    """Ridge regressions of clients' ratings on their rows of X, by Cholesky; the first column is the baseline.

    Sums keep the order of the code, so that it never depends on where memory was free how they are rounded.
    """
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings = rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings
    size, one = X.shape[1] - 1, np.uint64(1)
    gram, moment = np.empty((size, size), X.dtype), np.empty(size, X.dtype)
    four, targets = np.zeros((np.int64(4), size), X.dtype), np.zeros(np.int64(4), X.dtype)
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
                if j < n:
                    row = np.uint64(items[first + j] if j < rated else pseudo_items[pseudo_first + j - rated])
                    rating = levels[codes[first + j]] if j < rated else virtual_ratings[pseudo_first + j - rated]
                    targets[number] = rating - X[row, 0]
                    for c in range(np.uint64(size)):
                        four[number, c] = X[row, c + one]
                else:
                    targets[number] = 0
                    for c in range(np.uint64(size)):
                        four[number, c] = 0
            _add_rows(four, targets, gram, moment)
        decay = max(ridge[0] * n + ridge[1], 1e-9)
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
            out[place] = _product(X, np.uint64(pseudo_items[place]), W, np.uint64(client))


@inner
def _product(X: Any, row: Any, W: Any, client: Any) -> Any:
    total = X.dtype.type(0)
    for c in range(np.uint64(X.shape[1])):
        total += X[row, c] * W[client, c]
    return total


@kernel
def add_clients(
    clients: Any,
    rows: Any,
    X: Any,
    W: Any,
    rate: Any,
    how: Any,
    target: Any,
    largest: int,
    total: Any,
    per_item: Any,
) -> float:
    """Residuals of clients, their weights, and the sums of w η_L e_i w_V; ``left`` is the rest of every update."""
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings = rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings
    apart, apart_sizes, step_sizes = target.apart, target.apart_sizes, target.step_sizes
    width = np.uint64(total.shape[1])
    skip = np.uint64(X.shape[1]) - width
    numbers, e, own = np.empty(largest, np.int64), np.empty(largest, X.dtype), np.empty(total.shape[1], X.dtype)
    all_weights = 0.0
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first = pseudo_indptr[client]
        n = rated if how.rated_rows_only else rated + pseudo_indptr[client + 1] - pseudo_first
        for j in range(n):
            numbers[j] = items[first + j] if j < rated else pseudo_items[pseudo_first + j - rated]
            rating = levels[codes[first + j]] if j < rated else virtual_ratings[pseudo_first + j - rated]
            e[j] = rating - _product(X, np.uint64(numbers[j]), W, np.uint64(client))
        size = X.dtype.type(0)
        for c in range(width):
            own[c] = rate * W[client, skip + c]
            size += own[c] * own[c]
        weight = 1.0
        if how.distances:
            distance, own_step = 0.0, 0.0
            for j in range(n):
                row, along = np.uint64(numbers[j]), X.dtype.type(0)
                for c in range(width):
                    along += own[c] * apart[row, c]
                distance += apart_sizes[row] + e[j] * (along + along + e[j] * size)
                own_step += step_sizes[row]
            weight = weight_at(distance, own_step, n, how, target.whole_step)
        all_weights += weight
        for j in range(n):
            row, scaled = np.uint64(numbers[j]), X.dtype.type(weight) * e[j]
            per_item[row] += weight
            for c in range(width):
                total[row, c] += scaled * own[c]
    return all_weights
