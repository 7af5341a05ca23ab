"""Kernels of ``parts/model/joint.py``: both gradients of a client, one weight for both, and their sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model import ials
from fedrecplus.engines.fast.model.ials import (
    ChoiceRound,
    add_statistic,
    choice_factors,
    choice_gradients,
    choices_of,
    statistic_fits,
    train_with,
    updates_with,
)
from fedrecplus.engines.fast.model.reconstruction import (
    expected_gradients,
    posterior_covariance,
    posterior_weights,
    predict_clients,
    prior_of,
    rated_rows,
)
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.weighing import Weighing, add_steps, add_update, update_weight, within_bounds
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.joint import Settings, item_columns, mean_row, of_ratings
from fedrecplus.parts.model.reconstruction import item_columns as rating_columns
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates and statistics; nothing is kept on devices."""
    return train_with(_Round(problem, message, pseudo), how, clients), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    return updates_with(_Round(problem, message, pseudo), problem, pseudo, clients), private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for ratings, solved over its rated rows."""
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    solver, counts = _solver(problem, problem.public, X, weights), np.diff(problem.ratings.indptr)
    weights[:, 0], weights[:, -problem.config.model.options.factors] = 1.0, problem.config.model.options.user_mean
    on_threads(solver, chunks(np.flatnonzero(counts > 0), counts))
    return weights


def _solver(problem: Problem, public: PublicItems, X: NDArray[Any], weights: NDArray[Any]) -> Callable[[Clients], None]:
    """What solves for some clients' weights and writes them."""
    options: Settings = problem.config.model.options
    rows, prior = rated_rows(problem, X.dtype), prior_of(public, of_ratings(options), X)
    middle, share = mean_row(X, options, public).astype(X.dtype), X.dtype.type(options.choice_prior)

    def solve(part: Clients) -> None:
        solve_clients(part, rows, X, prior, middle, share, weights)

    return solve


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for lists."""
    return ials.list_weights(problem, weights, X, after=problem.config.model.options.factors)


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows."""
    problem, message = some.problem, some.message
    X = item_columns(message.V, message.public, problem.config.model.options)
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    solver = _solver(problem, message.public, X, weights)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solver(clients)
        predict_clients(clients, problem.pseudo_indptr, items, X, weights, out)

    return fill


class _Round(ChoiceRound):
    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, message, pseudo)
        options: Settings = problem.config.model.options
        V, W = message.V[:, : options.factors], message.V[:, options.factors :]
        self.X = rating_columns(V, message.public, of_ratings(options)).astype(V.dtype, copy=False)
        self.prior, self.over_all = prior_of(message.public, of_ratings(options), self.X), options.solve_over == "all"
        self.choices = choices_of(W, problem, message.public)

    def add(self, clients: Clients, how: Weighing, total: Any, per_item: Any, statistic: Any) -> float:
        largest = int(self.counts[clients].max())
        ratings = (self.X, self.prior, self.over_all)
        return float(
            add_clients(
                clients, self.rows, *ratings, self.choices, how, self.target, largest, total, per_item, statistic
            )
        )


@exact_kernel
def solve_clients(clients: Any, rows: Any, X: Any, prior: Any, middle: Any, share: Any, weights: Any) -> None:
    """Posterior means of clients' weights over all their rows, with a prior mean of V's from what they rated."""
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    size, variance, factors = X.shape[1] - 1, prior.variance, len(middle)
    first_V = X.shape[1] - factors
    largest = np.int64(0)
    for client in clients:
        largest = max(largest, indptr[client + 1] - indptr[client])
    numbers, ratings = np.empty(largest, np.int64), np.empty(largest, X.dtype)
    gram, moment, mean = np.empty((size, size), X.dtype), np.empty(size, X.dtype), np.empty(factors, X.dtype)
    four, targets = np.zeros((np.int64(4), size), X.dtype), np.zeros(np.int64(4), X.dtype)
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        for c in range(factors):
            mean[c] = 0
        for j in range(n):
            numbers[j] = items[first + j]
            for c in range(factors):
                mean[c] += X[numbers[j], first_V + c] - middle[c]
        for c in range(factors):
            mean[c] *= share / np.sqrt(X.dtype.type(n))
        for j in range(n):
            ratings[j] = levels[codes[first + j]]
            for c in range(factors):
                ratings[j] -= X[numbers[j], first_V + c] * mean[c]
        posterior_weights(numbers, ratings, n, X, variance, prior, four, targets, gram, moment)
        weights[client, 0] = 1
        for c in range(size):
            weights[client, c + 1] = moment[c]
        for c in range(factors):
            weights[client, first_V + c] += mean[c]


@exact_kernel
def add_clients(
    clients: Any,
    rows: Any,
    X: Any,
    prior: Any,
    over_all: bool,
    choices: Any,
    how: Any,
    target: Any,
    largest: int,
    total: Any,
    per_item: Any,
    statistic: Any,
) -> float:
    """Gradients of clients' ratings and choices, their weights, and the weighted sums; returns the sum of weights."""
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings = rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings
    variance, left = prior.variance, target.left
    W, confident = choices.W, choices.confidences
    size, width, one = np.uint64(X.shape[1] - 1), np.uint64(total.shape[1]), np.uint64(1)
    factors = np.uint64(W.shape[1])
    of_V = width - factors
    numbers, ratings = np.empty(largest, np.int64), np.empty(largest, X.dtype)
    confidence = np.empty(largest, X.dtype)
    gram, moment = np.empty((size, size), X.dtype), np.empty(size, X.dtype)
    inverse, S = np.empty((size, size), X.dtype), np.empty((size, of_V), X.dtype)
    four, targets = np.zeros((np.int64(4), size), X.dtype), np.zeros(np.int64(4), X.dtype)
    choice_gram, u = np.empty((factors, factors), X.dtype), np.empty(factors, X.dtype)
    four_choices, roots = np.zeros((np.int64(4), factors), X.dtype), np.zeros(np.int64(4), X.dtype)
    moved, own = np.empty((largest, width), X.dtype), np.ones(X.shape[1], X.dtype)
    all_weights = 0.0
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first = pseudo_indptr[client]
        n = rated + pseudo_indptr[client + 1] - pseudo_first
        for j in range(n):
            numbers[j] = items[first + j] if j < rated else pseudo_items[pseudo_first + j - rated]
            ratings[j] = levels[codes[first + j]] if j < rated else virtual_ratings[pseudo_first + j - rated]
            confidence[j] = confident[codes[first + j]] if j < rated else X.dtype.type(0)
        used = n if over_all else rated
        posterior_weights(numbers, ratings, used, X, variance, prior, four, targets, gram, moment)
        posterior_covariance(gram, prior.noise, inverse, S)
        for c in range(size):
            own[c + one] = moment[c]
        if how.rated_rows_only:
            n = rated
        expected_gradients(numbers, ratings, n, used, X, S, own, moved)
        choice_factors(numbers, confidence, rated, choices, four_choices, roots, choice_gram, u)
        choice_gradients(numbers, confidence, n, W, u, of_V, moved)
        weight = update_weight(numbers, n, moved, how, target)
        if how.in_steps:
            if how.marks:
                n = rated
            fits = within_bounds(weight, numbers, n, moved, left, how) and statistic_fits(weight, u, how)
            if how.left_out[client] == 0 and not fits:
                how.left_out[client] = 1
            if how.left_out[client] == 0:
                all_weights += add_steps(client, weight, numbers, n, moved, left, how, total, per_item)
                add_statistic(weight, u, how, statistic)
            continue
        all_weights += weight
        add_update(weight, numbers, n, moved, total, per_item)
        add_statistic(weight, u, how, statistic)
    return all_weights
