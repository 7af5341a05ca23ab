"""Kernels of ``parts/model/joint.py``: both gradients of a client, one weight for both, and their sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import exact_kernel
from fedrecplus.engines.fast.blocks import RowBlock, sums_of, updates_of
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model import ials
from fedrecplus.engines.fast.model.ials import ChoiceRound
from fedrecplus.engines.fast.model.reconstruction import (
    expected_moves,
    listed,
    predict_clients,
    prior_of,
    rated_rows,
    weights_of,
)
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.joint import Joint
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


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
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    solver, counts = _solver(problem, problem.public, X, weights), np.diff(problem.ratings.indptr)
    weights[:, 0], weights[:, -problem.config.model.settings.factors] = 1.0, problem.config.model.settings.user_mean
    on_threads(solver, chunks(np.flatnonzero(counts > 0), counts))
    return weights


def _solver(problem: Problem, public: PublicItems, X: NDArray[Any], weights: NDArray[Any]) -> Callable[[Clients], None]:
    """What solves for some clients' weights and writes them."""
    model = cast(Joint, problem.config.model)
    rows, prior = rated_rows(problem, X.dtype), prior_of(public, model.rating_model, X)
    middle, share = model.mean_row(X, public).astype(X.dtype), X.dtype.type(model.settings.choice_prior)

    def solve(part: Clients) -> None:
        for run, starts, numbers, ratings in listed(part, rows, X.dtype):
            means = np.zeros((len(run), len(middle)), dtype=X.dtype)
            less_expected(starts, numbers, X, middle, share, ratings, means)
            weights[run] = weights_of(starts, numbers, ratings, X, prior)
            weights[run, X.shape[1] - len(middle) :] += means

    return solve


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """Every client's weights for lists."""
    return ials.list_weights(problem, weights, X, after=problem.config.model.settings.factors)


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, from weights solved over their rated rows."""
    problem, message = some.problem, some.message
    X = problem.config.model.item_columns(message.V, message.public)
    weights = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype)
    solver = _solver(problem, message.public, X, weights)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        solver(clients)
        predict_clients(clients, problem.pseudo_indptr, items, X, weights, out)

    return fill


class _Round(ChoiceRound):
    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, message, pseudo)
        model = cast(Joint, problem.config.model)
        options, ratings = model.settings, model.rating_model
        V = message.V[:, : options.factors]
        self.X = ratings.item_columns(V, message.public).astype(V.dtype, copy=False)
        self.prior, self.over_all = prior_of(message.public, ratings, self.X), options.solve_over == "all"
        self.factors = options.factors

    def train(self, block: RowBlock) -> NDArray[Any]:
        self.list_rows(block)
        expected_moves(block, self.X, self.prior, self.over_all, self.factors)
        return self.choose(block)


@exact_kernel
def less_expected(starts: Any, numbers: Any, X: Any, middle: Any, share: Any, ratings: Any, means: Any) -> None:
    """Clients' prior means of V's weights, from what they rated; their ratings less what these expect."""
    factors = np.uint64(len(middle))
    first_V = np.uint64(X.shape[1]) - factors
    for k in range(len(means)):
        first, end = np.uint64(starts[k]), np.uint64(starts[k + 1])
        for j in range(first, end):
            row = np.uint64(numbers[j])
            for c in range(factors):
                means[k, c] += X[row, first_V + c] - middle[c]
        for c in range(factors):
            means[k, c] *= share / np.sqrt(X.dtype.type(end - first))
        for j in range(first, end):
            row = np.uint64(numbers[j])
            for c in range(factors):
                ratings[j] -= X[row, first_V + c] * means[k, c]
