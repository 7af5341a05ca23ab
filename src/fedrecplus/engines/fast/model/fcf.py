"""Kernels of ``parts/model/fcf.py``: solve for clients' factors, weigh their rows of all items, add them up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import exact_kernel
from fedrecplus.engines.fast.blocks import BlockRound, RowBlock, sums_of, updates_of
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.drawing import Clients
from fedrecplus.engines.fast.model.ials import ChoiceTerms, factors_of
from fedrecplus.engines.fast.model.reconstruction import listed, rated_rows
from fedrecplus.engines.fast.pseudo import KernelRows, PseudoRows
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.reference import ReferenceEngine
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.fcf import Settings
from fedrecplus.protocol import Broadcast, Sums, Upload

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


def _terms(Y: NDArray[Any], problem: Problem) -> ChoiceTerms:
    """What clients' factors come from: every rating is a choice of the same confidence."""
    options, wide, real = problem.config.model.settings, Y.astype(np.float64), Y.dtype.type
    gram = wide.T @ wide + options.regularisation * np.eye(Y.shape[1])
    confidences = np.full(len(problem.levels), options.confidence, Y.dtype)
    nothing = np.zeros(Y.shape[1], Y.dtype)
    return ChoiceTerms(np.ascontiguousarray(Y), gram.astype(Y.dtype), nothing, confidences, real(0), real(0))


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
    """The fallback's weights need no kernel."""
    return ReferenceEngine().user_weights(problem, private, X)


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """Every client's factors, over the last columns of X."""
    options: Settings = problem.config.model.settings
    terms, rows = _terms(X[:, -options.factors :], problem), rated_rows(problem, X.dtype)
    Z, counts = np.zeros((problem.ratings.clients, X.shape[1]), dtype=X.dtype), np.diff(rows.indptr)

    def work(part: Clients) -> None:
        Z[part, -options.factors :] = _factors(part, rows, terms)

    on_threads(work, chunks(np.flatnonzero(counts > 0), counts))
    return Z


class _Round(BlockRound):
    """Every client sends a row for every item."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, pseudo, np.zeros_like(message.V), message.last_step)
        self.terms, self.own = _terms(message.V, problem), rated_rows(problem, message.V.dtype)
        self.counts = self.rated = np.full(len(self.rated), len(message.V))

    def train(self, block: RowBlock) -> None:
        factors, terms = _factors(block.clients, self.own, self.terms), self.terms
        tables = (block.numbers, block.ratings, block.moved)
        moves_of_all(block.clients, self.own.indptr, self.own.items, terms.W, terms.confidences[0], factors, *tables)


def _factors(clients: Clients, rows: KernelRows, terms: ChoiceTerms) -> NDArray[Any]:
    """Clients' factors x. ``solve_choices`` sums α y, and the model has (1 + α) y."""
    own, alpha = rows._replace(levels=terms.confidences), terms.confidences[0]
    found = [
        factors_of(starts, np.diff(starts), numbers, confidence, terms)
        for _, starts, numbers, confidence in listed(clients, own, terms.W.dtype)
    ]
    return np.asarray(np.concatenate(found) * ((1 + alpha) / alpha))


@exact_kernel
def moves_of_all(
    clients: Any,
    indptr: Any,
    items: Any,
    Y: Any,
    confidence: Any,
    factors: Any,
    numbers: Any,
    ratings: Any,
    moved: Any,
) -> None:
    """f(u, i) of clients for all items; in ``ratings`` are the factors of x on the way."""
    count, width, one = np.uint64(Y.shape[0]), np.uint64(Y.shape[1]), Y.dtype.type(1)
    for k in range(np.uint64(len(clients))):
        first = k * count
        for row in range(count):
            score = Y.dtype.type(0)
            for c in range(width):
                score += Y[row, c] * factors[k, c]
            numbers[first + row] = row
            ratings[first + row] = -score
        for place in range(indptr[clients[k]], indptr[clients[k] + 1]):
            own = first + np.uint64(items[place])
            ratings[own] = (one + confidence) * (one + ratings[own])
        for row in range(count):
            for c in range(width):
                moved[first + row, c] = ratings[first + row] * factors[k, c]
