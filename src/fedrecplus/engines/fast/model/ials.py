"""Kernels of ``parts/model/ials.py``: solve for clients' factors, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import exact_kernel
from fedrecplus.engines.fast.blocks import BlockRound, RowBlock, list_rows, sums_of, updates_of
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model._solving import add_rows, solve
from fedrecplus.engines.fast.model.reconstruction import Prior, listed, predict_clients, rated_rows, solve_clients
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.ials import (
    POPULARITY,
    Ials,
    Settings,
    kept_structure,
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
    model = cast("Ials[Any]", problem.config.model)
    options, real = model.settings, W.dtype.type
    gram, moment = model.everybody(W.astype(np.float64), public)
    levels = model.confidences(problem.levels, public)
    ridge, cells = real(options.interaction_ridge), real(options.unobserved_weight * len(W))
    common = gram.astype(W.dtype), moment.astype(W.dtype)
    return ChoiceTerms(np.ascontiguousarray(W), *common, levels.astype(W.dtype), ridge, cells)


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates and statistics; nothing is kept on devices."""
    return sums_of(_Round(problem, message, pseudo), how, clients), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    return updates_of(_Round(problem, message, pseudo), clients), private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for ratings, solved over its rated rows."""
    prior, rows = no_doubt(problem.public, problem.config.model.settings, X), rated_rows(problem, X.dtype)
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    weights[:, 0] = 1.0
    counts = np.diff(rows.indptr)
    on_threads(lambda part: solve_clients(part, rows, X, prior, weights), chunks(np.flatnonzero(counts > 0), counts))
    return weights


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any], after: int = 0) -> NDArray[Any]:
    """Every client's weights for lists; ``after`` W there are more columns in X."""
    model = cast("Ials[Any]", problem.config.model)
    options = model.settings
    columns = slice(X.shape[1] - after - options.interaction_factors, X.shape[1] - after)
    choices = choices_of(X[:, columns] / X.dtype.type(options.interaction_scale), problem, problem.public)
    rows = rated_rows(problem, X.dtype)._replace(levels=choices.confidences)
    factors, counts = np.zeros((len(weights), options.interaction_factors), dtype=X.dtype), np.diff(rows.indptr)
    able = counts > 0

    def solve_some(part: Clients) -> None:
        for run, starts, numbers, confidence in listed(part, rows, X.dtype):
            factors[run] = factors_of(starts, np.diff(starts), numbers, confidence, choices)

    on_threads(solve_some, chunks(np.flatnonzero(able), counts))
    of_rating, of_popularity = (X.dtype.type(weight) for weight in model.mixing_weights(problem.public))
    Z: NDArray[Any] = of_rating * weights
    kept = kept_structure(choices.W, problem.public).astype(X.dtype)
    Z[:, columns] += factors @ kept / X.dtype.type(options.interaction_scale)
    Z[:, POPULARITY] += of_popularity
    Z[~able] = 0.0
    return Z


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows."""
    problem, model = some.problem, some.problem.config.model
    X = model.item_columns(some.message.V, some.message.public).astype(some.message.V.dtype, copy=False)
    rows, prior = rated_rows(problem, X.dtype), no_doubt(some.message.public, model.settings, X)
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solve_clients(clients, rows, X, prior, weights)
        predict_clients(clients, problem.pseudo_indptr, items, X, weights, out)

    return fill


class ChoiceRound(BlockRound):
    """What the kernels of a round share, where choices are learned from; W are the last columns of the table."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, pseudo, np.zeros_like(message.V), message.last_step)
        options: Settings = problem.config.model.settings
        self.statistic = problem.config.model.statistic_size
        self.choices = choices_of(message.V[:, -options.interaction_factors :], problem, message.public)
        # of rows as choices: confidences in place of ratings, and none in pseudo items
        unsure = np.zeros(len(self.rows.virtual_ratings), message.V.dtype)
        self.chosen = self.rows._replace(levels=self.choices.confidences, virtual_ratings=unsure)

    def choose(self, block: RowBlock) -> NDArray[Any]:
        """Write the gradients of choices as the last columns of a block's moves; returns clients' factors."""
        list_rows(block.clients, block.starts, self.chosen, block.numbers, block.ratings)
        factors = factors_of(block.starts, block.rated, block.numbers, block.ratings, self.choices)
        choice_moves(block.starts, block.numbers, block.ratings, self.choices.W, factors, block.moved)
        return factors


class _Round(ChoiceRound):
    def train(self, block: RowBlock) -> NDArray[Any]:
        return self.choose(block)


def factors_of(starts: Any, used: Any, numbers: Any, confidence: Any, choices: ChoiceTerms) -> NDArray[Any]:
    """The factors of clients with these rows, from the first ``used`` of them."""
    W = choices.W
    size, factors = W.shape[1], np.empty((len(used), W.shape[1]), W.dtype)
    scratch = (
        np.empty((size, size), W.dtype),
        np.empty(size, W.dtype),
        np.zeros((4, size), W.dtype),
        np.zeros(4, W.dtype),
    )
    solve_choices(starts, used, numbers, confidence, choices, scratch, factors)
    return factors


def no_doubt(public: PublicItems, options: Settings, X: NDArray[Any]) -> Prior:
    """The same for all columns: no mean, and no doubt about rows."""
    real = X.dtype.type
    return Prior(real(options.noise * public.noise), np.zeros(len(X), dtype=X.dtype), 0, real(0))


@exact_kernel
def solve_choices(
    starts: Any, used: Any, numbers: Any, confidence: Any, choices: Any, scratch: Any, factors: Any
) -> None:
    """Clients' factors u, from the choices among their rated rows."""
    gram, moment, four, roots = scratch
    W, common, common_moment, size = choices.W, choices.gram, choices.moment, np.uint64(len(moment))
    for k in range(len(used)):
        first, n, total = starts[k], used[k], choices.cells
        for a in range(size):
            moment[a] = common_moment[a]
            for b in range(a, size):
                gram[a, b] = common[a, b]
        for group in range(0, n, 4):
            for number in range(np.int64(4)):
                j = group + number
                roots[number] = 0
                if j < n:
                    row = np.uint64(numbers[first + j])
                    total += confidence[first + j]
                    roots[number] = np.sqrt(confidence[first + j])
                    for c in range(size):
                        four[number, c] = roots[number] * W[row, c]
                else:
                    for c in range(size):
                        four[number, c] = 0
            add_rows(four, roots, gram, moment)
        ridge = choices.ridge * np.sqrt(total)
        for a in range(size):
            gram[a, a] += ridge
        solve(gram, moment)
        for c in range(size):
            factors[k, c] = moment[c]


@exact_kernel
def choice_moves(starts: Any, numbers: Any, confidence: Any, W: Any, factors: Any, moved: Any) -> None:
    """c_j (1 − s_j)u as the last columns of ``moved``."""
    width, one = np.uint64(W.shape[1]), W.dtype.type(1)
    first = np.uint64(moved.shape[1]) - width
    for k in range(len(factors)):
        for j in range(np.uint64(starts[k]), np.uint64(starts[k + 1])):
            row, s = np.uint64(numbers[j]), W.dtype.type(0)
            for c in range(width):
                s += W[row, c] * factors[k, c]
            e = confidence[j] * (one - s)
            for c in range(width):
                moved[j, first + c] = e * factors[k, c]
