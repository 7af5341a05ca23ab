"""Kernels of ``parts/model/fcf.py``: solve for clients' factors, weigh their rows of all items, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.engines.fast.blocks import BlockRound, RowBlock, sums_of, updates_of
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel
from fedrecplus.engines.fast.drawing import Clients
from fedrecplus.engines.fast.model._solving import add_rows, solve
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.reference import ReferenceEngine
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model.fcf import Settings
from fedrecplus.protocol import Broadcast, Sums, Upload

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


class Confident(NamedTuple):
    """What clients' factors come from."""

    Y: Any
    gram: Any
    """YᵀY + λI"""
    confidence: Any


def _confident(Y: NDArray[Any], options: Settings) -> Confident:
    wide = Y.astype(np.float64)
    gram = wide.T @ wide + options.regularisation * np.eye(Y.shape[1])
    return Confident(np.ascontiguousarray(Y), gram.astype(Y.dtype), Y.dtype.type(options.confidence))


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
    options: Settings = problem.config.model.options
    some, ratings = _confident(X[:, -options.factors :], options), problem.ratings
    Z, counts = np.zeros((ratings.clients, X.shape[1]), dtype=X.dtype), np.diff(ratings.indptr)

    def work(part: Clients) -> None:
        Z[part, -options.factors :] = _factors(part, ratings, some)

    on_threads(work, chunks(np.flatnonzero(counts > 0), counts))
    return Z


class _Round(BlockRound):
    """Every client sends a row for every item."""

    def __init__(self, problem: Problem, message: Broadcast, pseudo: PseudoRows) -> None:
        super().__init__(problem, pseudo, np.zeros_like(message.V), message.last_step)
        self.ratings, self.some = problem.ratings, _confident(message.V, problem.config.model.options)
        self.counts = self.rated = np.full(len(self.rated), len(message.V))

    def train(self, block: RowBlock) -> None:
        factors = _factors(block.clients, self.ratings, self.some)
        moves_of_all(block.clients, self.ratings.indptr, self.ratings.items, self.some, factors, *block[3:])


def _factors(clients: Clients, ratings: Ratings, some: Confident) -> NDArray[Any]:
    """Clients' factors x."""
    size, dtype = some.Y.shape[1], some.Y.dtype
    room = np.empty((size, size), dtype), np.empty(size, dtype), np.zeros((4, size), dtype), np.ones(4, dtype)
    factors = np.empty((len(clients), size), dtype)
    solve_factors(clients, ratings.indptr, ratings.items, some, room, factors)
    return factors


@exact_kernel
def solve_factors(clients: Any, indptr: Any, items: Any, some: Any, room: Any, factors: Any) -> None:
    """x of some clients. Rows times √α have outer products times α; their sum lacks a factor of (1 + α)/√α."""
    gram, moment, four, ones = room
    Y, common, confidence = some.Y, some.gram, some.confidence
    size = np.uint64(len(moment))
    root = np.sqrt(confidence)
    scale = (Y.dtype.type(1) + confidence) / root
    for k in range(len(clients)):
        for a in range(size):
            moment[a] = 0
            for b in range(a, size):
                gram[a, b] = common[a, b]
        first, n = indptr[clients[k]], indptr[clients[k] + 1] - indptr[clients[k]]
        for group in range(0, n, 4):
            for number in range(np.int64(4)):
                j = group + number
                if j < n:
                    row = np.uint64(items[first + j])
                    for c in range(size):
                        four[number, c] = root * Y[row, c]
                else:
                    for c in range(size):
                        four[number, c] = 0
            add_rows(four, ones, gram, moment)
        for c in range(size):
            moment[c] *= scale
        solve(gram, moment)
        for c in range(size):
            factors[k, c] = moment[c]


@exact_kernel
def moves_of_all(
    clients: Any, indptr: Any, items: Any, some: Any, factors: Any, numbers: Any, ratings: Any, moved: Any
) -> None:
    """f(u, i) of clients for all items; in ``ratings`` are the factors of x on the way."""
    Y, confidence = some.Y, some.confidence
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
