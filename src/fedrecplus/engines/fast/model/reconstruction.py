"""Kernels of ``parts/model/reconstruction.py``: solve for clients' weights, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel, inner, kernel, section
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model._solving import add_rows, solve
from fedrecplus.engines.fast.pseudo import KernelRows, PseudoRows
from fedrecplus.engines.fast.summing import add_up, empty_sums, split_uploads
from fedrecplus.engines.fast.weighing import (
    Target,
    Weighing,
    add_steps,
    add_update,
    target_of,
    update_weight,
    within_bounds,
)
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.reconstruction import POPULARITY, Settings, item_columns, item_variance
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


class Prior(NamedTuple):
    """What is known of weights before any rating."""

    noise: Any
    variance: Any
    """of each row of V"""
    first: int
    """the first factor's place among the weights, the baseline's left out"""
    mean: Any
    """of the first factor"""


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; nothing is kept on devices."""
    some = _Round(problem, message, pseudo)

    def work(part: Clients) -> tuple[Any, Any, float]:
        total, per_item = empty_sums(message.V, how.in_steps), np.zeros(len(message.V))
        return total, per_item, some.add(part, how, total, per_item)

    return add_up(on_threads(work, some.chunks(clients)), some.left, len(clients), how.in_steps), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    some = _Round(problem, message, pseudo)

    def work(part: Clients) -> list[Upload]:
        per_item = np.zeros(len(message.V))

        def one(client: Clients, total: NDArray[Any]) -> None:
            some.add(client, Weighing(), total, per_item)

        return split_uploads(problem, pseudo, part, some.left, one)

    return [upload for found in on_threads(work, some.chunks(clients)) for upload in found], private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights, solved over its rated rows."""
    prior, rows = prior_of(problem.public, problem.config.model.options, X), rated_rows(problem, X.dtype)
    W = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    W[:, 0], W[:, 1 + prior.first] = 1.0, prior.mean
    counts = np.diff(rows.indptr)

    def work(part: Clients) -> None:
        solve_clients(part, rows, X, prior, W)

    on_threads(work, chunks(np.flatnonzero(counts > 0), counts))
    return W


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for lists; none of those without ratings."""
    Z = weights.copy()
    Z[:, POPULARITY] += X.dtype.type(problem.config.model.options.popularity_weight)
    Z[np.diff(problem.ratings.indptr) == 0] = 0.0
    return Z


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows."""
    problem, options = some.problem, some.problem.config.model.options
    X = _columns(some.message, options)
    rows, prior = rated_rows(problem, X.dtype), prior_of(some.message.public, options, X)
    W = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solve_clients(clients, rows, X, prior, W)
        predict_clients(clients, problem.pseudo_indptr, items, X, W, out)

    return fill


class _Round:
    """What the kernels of a round share."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        options: Settings = problem.config.model.options
        self.X, self.rows = _columns(message, options), pseudo.rows(problem)
        self.counts = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
        self.prior, self.over_all = prior_of(message.public, options, self.X), options.solve_over == "all"
        self.left = np.zeros_like(message.V)
        self.target: Target = target_of(self.left, message.last_step)

    def chunks(self, clients: Clients) -> list[Clients]:
        return chunks(clients, self.counts)

    def add(self, clients: Clients, how: Weighing, total: Any, per_item: Any) -> float:
        """Weigh the updates of some clients and add them to the sums; returns the sum of weights."""
        largest = int(self.counts[clients].max())
        return float(
            add_clients(
                clients, self.rows, self.X, self.prior, self.over_all, how, self.target, largest, total, per_item
            )
        )


def prior_of(public: PublicItems, options: Settings, X: NDArray[Any]) -> Prior:
    """Of weights over columns of which V's are the last."""
    variance = item_variance(public, options).astype(X.dtype)
    first = X.shape[1] - 1 - options.factors
    real = X.dtype.type  # a wider number would widen every loop that it is in
    return Prior(real(options.noise * public.noise), variance, first, real(options.user_mean))


def _columns(message: Broadcast, options: Settings) -> NDArray[Any]:
    return item_columns(message.V, message.public, options).astype(message.V.dtype, copy=False)


def rated_rows(problem: Problem, dtype: Any) -> KernelRows:
    """Everybody's rated rows, and no pseudo rows."""
    ratings, nobody = problem.ratings, np.zeros(problem.ratings.clients + 1, dtype=np.int64)
    levels, unrated = problem.levels.astype(dtype), np.zeros(0, dtype=ratings.items.dtype)
    return KernelRows(ratings.indptr, ratings.items, ratings.codes, levels, nobody, unrated, np.zeros(0, dtype=dtype))


@exact_kernel
def solve_clients(clients: Any, rows: Any, X: Any, prior: Any, W: Any) -> None:
    """Posterior means of clients' weights over all their rows.

    Sums keep the order of the code, so that it never depends on where memory was free how they are rounded.
    """
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    size, variance = X.shape[1] - 1, prior.variance
    largest = np.int64(0)
    for client in clients:
        largest = max(largest, indptr[client + 1] - indptr[client])
    numbers, ratings = np.empty(largest, np.int64), np.empty(largest, X.dtype)
    gram, moment = np.empty((size, size), X.dtype), np.empty(size, X.dtype)
    four, targets = np.zeros((np.int64(4), size), X.dtype), np.zeros(np.int64(4), X.dtype)
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        for j in range(n):
            numbers[j], ratings[j] = items[first + j], levels[codes[first + j]]
        posterior_weights(numbers, ratings, n, X, variance, prior, four, targets, gram, moment)
        W[client, 0] = 1
        for c in range(size):
            W[client, c + 1] = moment[c]


@section
def posterior_weights(
    numbers: Any,
    ratings: Any,
    n: int,
    X: Any,
    variance: Any,
    prior: Any,
    four: Any,
    targets: Any,
    gram: Any,
    moment: Any,
) -> None:
    """The posterior mean as ``moment``, and the Cholesky factor of its normal equations in ``gram``'s upper half."""
    size, one = np.uint64(len(moment)), np.uint64(1)
    doubt = X.dtype.type(0)
    for a in range(size):
        moment[a] = 0
        for b in range(a, size):
            gram[a, b] = 0
    for group in range(0, n, 4):
        for number in range(np.int64(4)):
            j = group + number
            if j < n:
                row = np.uint64(numbers[j])
                doubt += variance[row]
                for c in range(size):
                    four[number, c] = X[row, c + one]
                targets[number] = ratings[j] - X[row, 0] - prior.mean * four[number, prior.first]
            else:
                targets[number] = 0
                for c in range(size):
                    four[number, c] = 0
        add_rows(four, targets, gram, moment)
    for a in range(size):
        gram[a, a] += prior.noise + (doubt if a >= np.uint64(prior.first) else X.dtype.type(0))
    solve(gram, moment)
    moment[prior.first] += prior.mean


@section
def posterior_covariance(gram: Any, noise: Any, inverse: Any, S: Any) -> None:
    """S = noise·G⁻¹ for the last columns, those of V, from G's Cholesky factor R: rows of R⁻ᵀ, then their products."""
    size, width, one, two = np.uint64(gram.shape[0]), np.uint64(S.shape[1]), np.uint64(1), np.uint64(2)
    skip, nothing = size - width, gram.dtype.type(0)
    for k in range(size):
        for c in range(size):
            inverse[k, c] = 0
        inverse[k, k] = 1
        for j in range(np.uint64(0), k, two):  # two rows at a time; where the second is row k itself, nothing of it
            first, second = gram[j, k], gram[j + one, k] if j + one < k else nothing
            for c in range(size):
                inverse[k, c] -= first * inverse[j, c] + second * inverse[j + one, c]
        for c in range(size):
            inverse[k, c] /= gram[k, k]
    for a in range(size):
        for c in range(width):
            S[a, c] = 0
        for k in range(a if a > skip else skip, size):
            factor = noise * inverse[k, a]
            for c in range(width):
                S[a, c] += factor * inverse[k, skip + c]


@kernel
def predict_clients(clients: Any, pseudo_indptr: Any, pseudo_items: Any, X: Any, W: Any, out: Any) -> None:
    """X·w for the clients' pseudo items."""
    for client in clients:
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            out[place] = product(X, np.uint64(pseudo_items[place]), W[client])


@inner
def product(X: Any, row: Any, w: Any) -> Any:
    """X_row·w."""
    total = X.dtype.type(0)
    for c in range(np.uint64(len(w))):
        total += X[row, c] * w[c]
    return total


@section
def expected_gradients(numbers: Any, ratings: Any, n: int, used: int, X: Any, S: Any, own: Any, moved: Any) -> None:
    """e_j w_V − S_V x_j for the first n rows, as the first columns of ``moved``; weights are solved over ``used``."""
    size, width, one = np.uint64(S.shape[0]), np.uint64(S.shape[1]), np.uint64(1)
    skip, four_columns = size - width, np.uint64(4)
    fours = size // four_columns * four_columns
    for j in range(n):
        row = np.uint64(numbers[j])
        e = ratings[j] - product(X, row, own)
        for c in range(width):
            moved[j, c] = e * own[skip + c + one]
        if j < used:
            for a in range(np.uint64(0), fours, four_columns):
                b, d, f = a + one, a + one + one, a + one + one + one
                x0, x1, x2, x3 = X[row, b], X[row, d], X[row, f], X[row, f + one]
                for c in range(width):
                    moved[j, c] -= x0 * S[a, c] + x1 * S[b, c] + x2 * S[d, c] + x3 * S[f, c]
            for a in range(fours, size):
                x0 = X[row, a + one]
                for c in range(width):
                    moved[j, c] -= x0 * S[a, c]


@exact_kernel
def add_clients(
    clients: Any,
    rows: Any,
    X: Any,
    prior: Any,
    over_all: bool,
    how: Any,
    target: Any,
    largest: int,
    total: Any,
    per_item: Any,
) -> float:
    """Expected gradients of clients, their weights, and the weighted sums; returns the sum of weights."""
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings = rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings
    variance, left = prior.variance, target.left
    size, width, one = np.uint64(X.shape[1] - 1), np.uint64(total.shape[1]), np.uint64(1)
    numbers, ratings = np.empty(largest, np.int64), np.empty(largest, X.dtype)
    gram, moment = np.empty((size, size), X.dtype), np.empty(size, X.dtype)
    inverse, S = np.empty((size, size), X.dtype), np.empty((size, width), X.dtype)
    four, targets = np.zeros((np.int64(4), size), X.dtype), np.zeros(np.int64(4), X.dtype)
    moved, own = np.empty((largest, width), X.dtype), np.ones(X.shape[1], X.dtype)
    all_weights = 0.0
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first = pseudo_indptr[client]
        n = rated + pseudo_indptr[client + 1] - pseudo_first
        for j in range(n):
            numbers[j] = items[first + j] if j < rated else pseudo_items[pseudo_first + j - rated]
            ratings[j] = levels[codes[first + j]] if j < rated else virtual_ratings[pseudo_first + j - rated]
        used = n if over_all else rated
        posterior_weights(numbers, ratings, used, X, variance, prior, four, targets, gram, moment)
        posterior_covariance(gram, prior.noise, inverse, S)
        for c in range(size):
            own[c + one] = moment[c]
        if how.rated_rows_only:
            n = rated
        expected_gradients(numbers, ratings, n, used, X, S, own, moved)
        weight = update_weight(numbers, n, moved, how, target)
        if how.in_steps:
            if how.marks:
                n = rated
            if how.left_out[client] == 0 and not within_bounds(weight, numbers, n, moved, left, how):
                how.left_out[client] = 1
            if how.left_out[client] == 0:
                all_weights += add_steps(client, weight, numbers, n, moved, left, how, total, per_item)
            continue
        all_weights += weight
        add_update(weight, numbers, n, moved, total, per_item)
    return all_weights
