"""Kernels of ``parts/model/fcf.py``: solve for clients' factors, weigh their rows of all items, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import exact_kernel, section
from fedrecplus.engines.fast.drawing import Clients
from fedrecplus.engines.fast.model._solving import add_rows, solve
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.summing import add_up, empty_sums, split_uploads
from fedrecplus.engines.fast.weighing import Target, Weighing, add_steps, target_of, weight_at, within_bounds
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
    some, ratings = _confident(message.V, problem.config.model.options), problem.ratings
    left = np.zeros_like(message.V)
    target: Target = target_of(left, message.last_step)

    def work(part: Clients) -> tuple[Any, Any, float]:
        total, per_item = empty_sums(message.V, how.in_steps), np.zeros(len(message.V))
        return total, per_item, add_clients(part, ratings.indptr, ratings.items, some, how, target, total, per_item)

    parts = on_threads(work, chunks(clients, np.diff(ratings.indptr)))
    return add_up(parts, left, len(clients), how.in_steps), private.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; nothing is kept on devices."""
    some, ratings = _confident(message.V, problem.config.model.options), problem.ratings
    left, per_item = np.zeros_like(message.V), np.zeros(len(message.V))
    target: Target = target_of(left, message.last_step)

    def one(client: Clients, total: NDArray[Any]) -> None:
        add_clients(client, ratings.indptr, ratings.items, some, Weighing(), target, total, per_item)

    return split_uploads(problem, pseudo, clients, left, one), private.U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """The fallback's weights need no kernel."""
    return ReferenceEngine().user_weights(problem, private, X)


def list_weights(problem: Problem, weights: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """Every client's factors, over the last columns of X."""
    options: Settings = problem.config.model.options
    some, ratings = _confident(X[:, -options.factors :], options), problem.ratings
    Z, counts = np.zeros((ratings.clients, X.shape[1]), dtype=X.dtype), np.diff(ratings.indptr)

    def work(part: Clients) -> None:
        solve_clients(part, ratings.indptr, ratings.items, some, Z)

    on_threads(work, chunks(np.flatnonzero(counts > 0), counts))
    return Z


@section
def _factors(client: int, indptr: Any, items: Any, some: Any, four: Any, ones: Any, gram: Any, moment: Any) -> None:
    """x as ``moment``. Rows times √α have outer products times α; their sum lacks a factor of (1 + α)/√α."""
    Y, common, confidence = some.Y, some.gram, some.confidence
    size = np.uint64(len(moment))
    root = np.sqrt(confidence)
    scale = (Y.dtype.type(1) + confidence) / root
    for a in range(size):
        moment[a] = 0
        for b in range(a, size):
            gram[a, b] = common[a, b]
    first, n = indptr[client], indptr[client + 1] - indptr[client]
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


@exact_kernel
def solve_clients(clients: Any, indptr: Any, items: Any, some: Any, Z: Any) -> None:
    """Clients' factors, as the last columns of Z."""
    size = some.Y.shape[1]
    before = Z.shape[1] - size
    gram, x = np.empty((size, size), Z.dtype), np.empty(size, Z.dtype)
    four, ones = np.zeros((np.int64(4), size), Z.dtype), np.ones(np.int64(4), Z.dtype)
    for client in clients:
        _factors(client, indptr, items, some, four, ones, gram, x)
        for c in range(size):
            Z[client, before + c] = x[c]


@exact_kernel
def add_clients(
    clients: Any, indptr: Any, items: Any, some: Any, how: Any, target: Any, total: Any, per_item: Any
) -> float:
    """f(u, i) of clients for all items, their weights, and the weighted sums; returns the sum of weights."""
    Y, confidence = some.Y, some.confidence
    apart, count, width = target.apart, np.uint64(Y.shape[0]), np.uint64(Y.shape[1])
    gram, x = np.empty((width, width), Y.dtype), np.empty(width, Y.dtype)
    four, ones = np.zeros((np.int64(4), width), Y.dtype), np.ones(np.int64(4), Y.dtype)
    moved, numbers = np.empty((count, width), Y.dtype), np.arange(np.int64(count))
    factor, one, left = np.empty(count, Y.dtype), Y.dtype.type(1), target.left
    all_weights = 0.0
    for client in clients:
        _factors(client, indptr, items, some, four, ones, gram, x)
        for row in range(count):
            score = Y.dtype.type(0)
            for c in range(width):
                score += Y[row, c] * x[c]
            factor[row] = -score
        for place in range(indptr[client], indptr[client + 1]):
            own = np.uint64(items[place])
            factor[own] = (one + confidence) * (one + factor[own])
        weight, distance = 1.0, 0.0
        for row in range(count):
            for c in range(width):
                moved[row, c] = factor[row] * x[c]
                gap = moved[row, c] + apart[row, c]
                distance += gap * gap
        if how.distances:
            weight = weight_at(distance, target.whole_step, count, how, target.whole_step)
        if how.in_steps:
            if how.left_out[client] == 0 and not within_bounds(weight, numbers, count, moved, left, how):
                how.left_out[client] = 1
            if how.left_out[client] == 0:
                all_weights += add_steps(client, weight, numbers, count, moved, left, how, total, per_item)
            continue
        all_weights += weight
        scaled = Y.dtype.type(weight)
        for row in range(count):
            per_item[row] += weight
            for c in range(width):
                total[row, c] += scaled * moved[row, c]
    return all_weights
