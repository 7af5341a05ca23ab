"""Kernels of ``parts/model/ials.py``: solve for clients' factors, weigh their updates, add them up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel, section
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model._solving import add_rows, solve
from fedrecplus.engines.fast.model.reconstruction import Prior, predict_clients, rated_rows, solve_clients
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
from fedrecplus.parts.model.ials import (
    POPULARITY,
    Settings,
    confidences,
    everybody,
    item_columns,
    kept_structure,
    mixing_weights,
    statistic_size,
)
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


class ChoiceTerms(NamedTuple):
    """What the choice scores of a round come from."""

    W: Any
    gram: Any
    """the part of the normal equations that is the same for all"""
    moment: Any
    confidences: Any
    """level number → the confidence of such a rating; 0: no choice"""
    ridge: Any
    """λ"""
    cells: Any
    """a × items"""


def choices_of(W: NDArray[Any], problem: Problem, public: PublicItems) -> ChoiceTerms:
    """From W alone; the matrices in double precision first."""
    options: Settings = problem.config.model.options
    gram, moment = everybody(W.astype(np.float64), public, options)
    levels, real = confidences(problem.levels, options, public), W.dtype.type
    ridge, cells = real(options.interaction_ridge), real(options.unobserved_weight * len(W))
    common = gram.astype(W.dtype), moment.astype(W.dtype)
    return ChoiceTerms(np.ascontiguousarray(W), *common, levels.astype(W.dtype), ridge, cells)


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


def train_with(some: ChoiceRound, how: Weighing, clients: Clients) -> Sums:
    """The sums of a round of a model with a statistic."""

    def work(part: Clients) -> tuple[Any, Any, float, Any]:
        total = empty_sums(some.left, how.in_steps)
        per_item, statistic = np.zeros(len(some.left)), np.zeros(some.statistic)
        return total, per_item, some.add(part, how, total, per_item, statistic), statistic

    parts = on_threads(work, some.chunks(clients))
    sums = add_up([part[:3] for part in parts], some.left, len(clients), how.in_steps)
    statistic = np.zeros(some.statistic)
    for part in parts:
        statistic += part[3]
    return replace(sums, statistic=statistic)


def updates_with(some: ChoiceRound, problem: Problem, pseudo: PseudoRows, clients: Clients) -> list[Upload]:
    """The single updates of a round of a model with a statistic."""

    def work(part: Clients) -> list[Upload]:
        per_item, statistics = np.zeros(len(some.left)), []

        def one(client: Clients, total: NDArray[Any]) -> None:
            statistics.append(np.zeros(some.statistic))
            some.add(client, Weighing(), total, per_item, statistics[-1])

        found = split_uploads(problem, pseudo, part, some.left, one)
        return [replace(upload, statistic=own) for upload, own in zip(found, statistics, strict=True)]

    return [upload for found in on_threads(work, some.chunks(clients)) for upload in found]


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for ratings, solved over its rated rows."""
    prior, rows = no_doubt(problem.public, problem.config.model.options, X), rated_rows(problem, X.dtype)
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    weights[:, 0] = 1.0
    counts = np.diff(rows.indptr)
    on_threads(lambda part: solve_clients(part, rows, X, prior, weights), chunks(np.flatnonzero(counts > 0), counts))
    return weights


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any], after: int = 0) -> NDArray[Any]:
    """Every client's weights for lists; ``after`` W there are more columns in X."""
    options: Settings = problem.config.model.options
    columns = slice(X.shape[1] - after - options.interaction_factors, X.shape[1] - after)
    choices = choices_of(X[:, columns] / X.dtype.type(options.interaction_scale), problem, problem.public)
    rows, factors = rated_rows(problem, X.dtype), np.zeros((len(weights), options.interaction_factors), dtype=X.dtype)
    counts = np.diff(rows.indptr)
    able = counts > 0
    on_threads(lambda part: solve_choices(part, rows, choices, factors), chunks(np.flatnonzero(able), counts))
    of_rating, of_popularity = (X.dtype.type(weight) for weight in mixing_weights(options, problem.public))
    Z: NDArray[Any] = of_rating * weights
    kept = kept_structure(choices.W, problem.public).astype(X.dtype)
    Z[:, columns] += factors @ kept / X.dtype.type(options.interaction_scale)
    Z[:, POPULARITY] += of_popularity
    Z[~able] = 0.0
    return Z


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows."""
    problem, options = some.problem, some.problem.config.model.options
    X = item_columns(some.message.V, some.message.public, options).astype(some.message.V.dtype, copy=False)
    rows, prior = rated_rows(problem, X.dtype), no_doubt(some.message.public, options, X)
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solve_clients(clients, rows, X, prior, weights)
        predict_clients(clients, problem.pseudo_indptr, items, X, weights, out)

    return fill


class ChoiceRound:
    """What the kernels of a round share."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        self.rows: KernelRows = pseudo.rows(problem)
        self.counts = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
        self.left = np.zeros_like(message.V)
        self.target: Target = target_of(self.left, message.last_step)
        self.statistic: int = statistic_size(problem.config.model.options)

    def chunks(self, clients: Clients) -> list[Clients]:
        """The clients in runs."""
        return chunks(clients, self.counts)

    def add(self, clients: Clients, how: Weighing, total: Any, per_item: Any, statistic: Any) -> float:
        """Weigh the updates of some clients and add them to the sums; returns the sum of weights."""
        raise NotImplementedError


class _Round(ChoiceRound):
    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, message, pseudo)
        self.choices = choices_of(message.V, problem, message.public)

    def add(self, clients: Clients, how: Weighing, total: Any, per_item: Any, statistic: Any) -> float:
        largest = int(self.counts[clients].max())
        return float(
            add_clients(clients, self.rows, self.choices, how, self.target, largest, total, per_item, statistic)
        )


def no_doubt(public: PublicItems, options: Settings, X: NDArray[Any]) -> Prior:
    """The same for all columns: no mean, and no doubt about rows."""
    real = X.dtype.type
    return Prior(real(options.noise * public.noise), np.zeros(len(X), dtype=X.dtype), 0, real(0))


@exact_kernel
def solve_choices(clients: Any, rows: Any, choices: Any, factors: Any) -> None:
    """Clients' factors, from the choices among their rated rows."""
    indptr, items, codes = rows.indptr, rows.items, rows.codes
    W, levels = choices.W, choices.confidences
    size = W.shape[1]
    largest = np.int64(0)
    for client in clients:
        largest = max(largest, indptr[client + 1] - indptr[client])
    numbers, confidence = np.empty(largest, np.int64), np.empty(largest, W.dtype)
    gram, moment = np.empty((size, size), W.dtype), np.empty(size, W.dtype)
    four, roots = np.zeros((np.int64(4), size), W.dtype), np.zeros(np.int64(4), W.dtype)
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        for j in range(n):
            numbers[j], confidence[j] = items[first + j], levels[codes[first + j]]
        choice_factors(numbers, confidence, n, choices, four, roots, gram, moment)
        for c in range(size):
            factors[client, c] = moment[c]


@section
def choice_factors(
    numbers: Any, confidence: Any, n: int, choices: Any, four: Any, roots: Any, gram: Any, moment: Any
) -> None:
    """u, from the rows of a client's n rated items and their confidences, as ``moment``."""
    size, W, total = np.uint64(len(moment)), choices.W, choices.cells
    common, common_moment = choices.gram, choices.moment
    for a in range(size):
        moment[a] = common_moment[a]
        for b in range(a, size):
            gram[a, b] = common[a, b]
    for group in range(0, n, 4):
        for number in range(np.int64(4)):
            j = group + number
            if j < n:
                row = np.uint64(numbers[j])
                total += confidence[j]
                roots[number] = np.sqrt(confidence[j])
                for c in range(size):
                    four[number, c] = roots[number] * W[row, c]
            else:
                roots[number] = 0
                for c in range(size):
                    four[number, c] = 0
        add_rows(four, roots, gram, moment)
    ridge = choices.ridge * np.sqrt(total)
    for a in range(size):
        gram[a, a] += ridge
    solve(gram, moment)


@section
def choice_gradients(numbers: Any, confidence: Any, n: int, W: Any, u: Any, offset: int, moved: Any) -> None:
    """c_j (1 − s_j)u as columns of ``moved`` from ``offset`` on."""
    width, first = np.uint64(len(u)), np.uint64(offset)
    for j in range(n):
        row, s = np.uint64(numbers[j]), W.dtype.type(0)
        for c in range(width):
            s += W[row, c] * u[c]
        e = confidence[j] * (W.dtype.type(1) - s)
        for c in range(width):
            moved[j, first + c] = e * u[c]


@section
def add_statistic(weight: float, u: Any, how: Any, statistic: Any) -> None:
    """Add the upper triangle of w u uᵀ, row by row; in whole steps where the sums are."""
    place = 0
    for a in range(len(u)):
        for b in range(a, len(u)):
            value = weight * (u[a] * u[b])
            statistic[place] += np.rint(value * how.statistic_scale) if how.in_steps else value
            place += 1


@section
def statistic_fits(weight: float, u: Any, how: Any) -> bool:
    """Whether all numbers of w u uᵀ have room in the ring: see ``parts/channel/_ring.py``."""
    largest = 0.0
    for a in range(len(u)):
        value = abs(u[a])
        if not value <= largest:
            largest = value
    return bool(weight * largest * largest <= how.largest_statistic)


@exact_kernel
def add_clients(
    clients: Any,
    rows: Any,
    choices: Any,
    how: Any,
    target: Any,
    largest: int,
    total: Any,
    per_item: Any,
    statistic: Any,
) -> float:
    """Gradients of clients' choices, their weights, and the weighted sums; returns the sum of weights."""
    indptr, items, codes = rows.indptr, rows.items, rows.codes
    pseudo_indptr, pseudo_items = rows.pseudo_indptr, rows.pseudo_items
    left = target.left
    W, levels = choices.W, choices.confidences
    width = np.uint64(total.shape[1])
    numbers, confidence = np.empty(largest, np.int64), np.empty(largest, W.dtype)
    gram, u = np.empty((width, width), W.dtype), np.empty(width, W.dtype)
    four, roots = np.zeros((np.int64(4), width), W.dtype), np.zeros(np.int64(4), W.dtype)
    moved = np.empty((largest, width), W.dtype)
    all_weights = 0.0
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first = pseudo_indptr[client]
        n = rated + pseudo_indptr[client + 1] - pseudo_first
        if how.rated_rows_only:
            n = rated
        for j in range(n):
            numbers[j] = items[first + j] if j < rated else pseudo_items[pseudo_first + j - rated]
            confidence[j] = levels[codes[first + j]] if j < rated else W.dtype.type(0)
        choice_factors(numbers, confidence, rated, choices, four, roots, gram, u)
        choice_gradients(numbers, confidence, n, W, u, 0, moved)
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
