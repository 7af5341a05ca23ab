"""Kernels of ``parts/model/reconstruction.py``: solve for clients' weights, weigh their updates, add them up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import exact_kernel, inner, kernel, section
from fedrecplus.engines.fast.blocks import BlockRound, RowBlock, list_rows, runs_of, starts_of, sums_of, updates_of
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model._solving import add_rows, solve
from fedrecplus.engines.fast.pseudo import KernelRows, PseudoRows
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.reconstruction import POPULARITY, Reconstruction
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


class PosteriorScratch(NamedTuple):
    """Arrays that a kernel works in."""

    gram: Any
    moment: Any
    inverse: Any
    S: Any
    four: Any
    targets: Any
    own: Any

    @classmethod
    def of(cls, X: NDArray[Any], factors: int) -> PosteriorScratch:
        """For weights over the columns X, the last of which are V's."""
        size = X.shape[1] - 1
        square, column = np.empty((size, size), X.dtype), np.empty(size, X.dtype)
        four, targets = np.zeros((4, size), X.dtype), np.zeros(4, X.dtype)
        S = np.empty((size, factors), X.dtype)
        return cls(square, column, np.empty_like(square), S, four, targets, np.ones(size + 1, X.dtype))


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; nothing is kept on devices."""
    return sums_of(_Round(problem, message, pseudo), how, clients), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    return updates_of(_Round(problem, message, pseudo), clients), private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights, solved over its rated rows."""
    prior, rows = prior_of(problem.public, cast(Reconstruction, problem.config.model), X), rated_rows(problem, X.dtype)
    W = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    W[:, 0], W[:, 1 + prior.first] = 1.0, prior.mean
    counts = np.diff(rows.indptr)
    on_threads(lambda part: solve_clients(part, rows, X, prior, W), chunks(np.flatnonzero(counts > 0), counts))
    return W


def solve_clients(clients: Clients, rows: KernelRows, X: NDArray[Any], prior: Prior, W: NDArray[Any]) -> None:
    """Write some clients' weights, solved over their rated rows."""
    for run, starts, numbers, ratings in listed(clients, rows, X.dtype):
        W[run] = weights_of(starts, numbers, ratings, X, prior)


def listed(clients: Clients, rows: KernelRows, dtype: Any) -> Iterator[tuple[Clients, Any, Any, Any]]:
    """Clients in runs: the clients, the first places of their rows, these rows' items, and their ratings."""
    counts = np.diff(rows.indptr)
    for run in runs_of(clients, counts):
        starts = starts_of(counts[run])
        numbers, ratings = np.empty(starts[-1], np.int64), np.empty(starts[-1], dtype)
        list_rows(run, starts, rows, numbers, ratings)
        yield run, starts, numbers, ratings


def weights_of(starts: Any, numbers: Any, ratings: Any, X: NDArray[Any], prior: Prior) -> NDArray[Any]:
    """The weights of clients with these rows."""
    weights, nothing = np.empty((len(starts) - 1, X.shape[1]), X.dtype), np.empty((0, 0), X.dtype)
    posterior(starts, np.diff(starts), numbers, ratings, X, prior, PosteriorScratch.of(X, 0), weights, nothing)
    return weights


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for lists; none of those without ratings."""
    Z = weights.copy()
    Z[:, POPULARITY] += X.dtype.type(problem.config.model.settings.popularity_weight)
    Z[np.diff(problem.ratings.indptr) == 0] = 0.0
    return Z


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows."""
    problem, model = some.problem, cast(Reconstruction, some.problem.config.model)
    X = _columns(some.message, model)
    rows, prior = rated_rows(problem, X.dtype), prior_of(some.message.public, model, X)
    W = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solve_clients(clients, rows, X, prior, W)
        predict_clients(clients, problem.pseudo_indptr, items, X, W, out)

    return fill


class _Round(BlockRound):
    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, pseudo, np.zeros_like(message.V), message.last_step)
        model = cast(Reconstruction, problem.config.model)
        options, self.X = model.settings, _columns(message, model)
        self.prior, self.over_all = prior_of(message.public, model, self.X), options.solve_over == "all"

    def train(self, block: RowBlock) -> None:
        self.list_rows(block)
        expected_moves(block, self.X, self.prior, self.over_all, block.moved.shape[1])


def expected_moves(block: RowBlock, X: NDArray[Any], prior: Prior, over_all: bool, factors: int) -> None:
    """Write expected gradients as the first columns of a block's moves."""
    used, weights = block.counts if over_all else block.rated, np.empty((len(block.clients), X.shape[1]), X.dtype)
    scratch = PosteriorScratch.of(X, factors)
    posterior(block.starts, used, block.numbers, block.ratings, X, prior, scratch, weights, block.moved)


def prior_of(public: PublicItems, model: Reconstruction, X: NDArray[Any]) -> Prior:
    """Of weights over columns of which V's are the last."""
    options, variance = model.settings, model.item_variance(public).astype(X.dtype)
    first = X.shape[1] - 1 - options.factors
    real = X.dtype.type  # a wider number would widen every loop that it is in
    return Prior(real(options.noise * public.noise), variance, first, real(options.user_mean))


def _columns(message: Broadcast, model: Reconstruction) -> NDArray[Any]:
    return model.item_columns(message.V, message.public).astype(message.V.dtype, copy=False)


def rated_rows(problem: Problem, dtype: Any) -> KernelRows:
    """Everybody's rated rows, and no pseudo rows."""
    ratings, nobody = problem.ratings, np.zeros(problem.ratings.clients + 1, dtype=np.int64)
    levels, unrated = problem.levels.astype(dtype), np.zeros(0, dtype=ratings.items.dtype)
    return KernelRows(ratings.indptr, ratings.items, ratings.codes, levels, nobody, unrated, np.zeros(0, dtype=dtype))


@exact_kernel
def posterior(
    starts: Any, used: Any, numbers: Any, ratings: Any, X: Any, prior: Any, scratch: Any, weights: Any, moved: Any
) -> None:
    """Posterior means of clients' weights over the first ``used`` of their rows; moves too, unless ``moved`` is empty.

    Sums keep the order of the code, so that it never depends on where memory was free how they are rounded.
    """
    gram, moment, inverse, S, own = scratch.gram, scratch.moment, scratch.inverse, scratch.S, scratch.own
    four, targets, variance = scratch.four, scratch.targets, prior.variance
    size, one = np.uint64(len(moment)), np.uint64(1)
    for k in range(len(used)):
        _posterior_weights(numbers, ratings, starts[k], used[k], X, variance, prior, four, targets, gram, moment)
        weights[k, 0] = 1
        for c in range(size):
            own[c + one] = moment[c]
            weights[k, c + one] = moment[c]
        if moved.shape[0] > 0:
            _posterior_covariance(gram, prior.noise, inverse, S)
            _expected_gradients(numbers, ratings, starts[k], starts[k + 1], starts[k] + used[k], X, S, own, moved)


@section
def _posterior_weights(
    numbers: Any,
    ratings: Any,
    first: int,
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
                row = np.uint64(numbers[first + j])
                doubt += variance[row]
                for c in range(size):
                    four[number, c] = X[row, c + one]
                targets[number] = ratings[first + j] - X[row, 0] - prior.mean * four[number, prior.first]
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
def _posterior_covariance(gram: Any, noise: Any, inverse: Any, S: Any) -> None:
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
def _expected_gradients(
    numbers: Any, ratings: Any, first: int, end: int, used_end: int, X: Any, S: Any, own: Any, moved: Any
) -> None:
    """e_j w_V − S_V x_j, as the first columns of ``moved``; weights are solved over the rows before ``used_end``."""
    size, width, one = np.uint64(S.shape[0]), np.uint64(S.shape[1]), np.uint64(1)
    skip, four_columns = size - width, np.uint64(4)
    fours = size // four_columns * four_columns
    for j in range(np.uint64(first), np.uint64(end)):
        row = np.uint64(numbers[j])
        e = ratings[j] - product(X, row, own)
        for c in range(width):
            moved[j, c] = e * own[skip + c + one]
        if j < np.uint64(used_end):
            for a in range(np.uint64(0), fours, four_columns):
                b, d, f = a + one, a + one + one, a + one + one + one
                x0, x1, x2, x3 = X[row, b], X[row, d], X[row, f], X[row, f + one]
                for c in range(width):
                    moved[j, c] -= x0 * S[a, c] + x1 * S[b, c] + x2 * S[d, c] + x3 * S[f, c]
            for a in range(fours, size):
                x0 = X[row, a + one]
                for c in range(width):
                    moved[j, c] -= x0 * S[a, c]
