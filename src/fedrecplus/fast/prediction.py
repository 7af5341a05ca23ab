"""Private refits of all clients at once. The same result as ``simulation.prediction_factors``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.fast.compiling import exact_kernel, section
from fedrecplus.fast.threads import chunks, on_threads
from fedrecplus.rounds.refit import widened
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.simulation.prediction import expected_of, prediction_table


def prediction_factors(problem: Problem, state: SimulationState) -> NDArray[Any]:
    """Each client's own U or its private refit, as the settings say; a client without ratings keeps its start."""
    config, ratings = problem.config, problem.ratings
    if config.prediction.factors == "own":
        return state.U
    V = prediction_table(problem, state)
    factors = widened(state.U, V, config)
    start = expected_of(problem, V)
    scale = ratings.scale
    levels = scale.standardise(scale.values(np.arange(scale.levels)))
    rows = np.diff(ratings.indptr)
    columns = V.shape[1] - config.model.biases  # factors and traits

    def work(some: NDArray[np.int64]) -> None:
        refit_clients(
            some, ratings.indptr, ratings.items, ratings.codes, levels, V, problem.mean, columns,
            config.model.biases, start.U, start.mean_item,
            config.prediction.regularisation, config.prediction.floor, factors,
        )  # fmt: skip

    on_threads(work, chunks(np.flatnonzero(rows > 0), rows))
    return factors


@exact_kernel
def refit_clients(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    V: Any,
    mean: float,
    factors: int,
    biases: bool,
    U_prior: Any,
    mean_item: Any,
    regularisation: float,
    floor: float,
    out: Any,
) -> None:
    """Ridge regression of a client's ratings on its rows of V, by Cholesky. See ``rounds/refit.py``."""
    size = factors + 1 if biases else factors
    gram = np.empty((size, size))
    moment = np.empty(size)
    four = np.int64(4)  # see hybrid: a plain number is a type of its own
    rows, targets = np.empty((four, size)), np.empty(four)
    start = np.empty(size)
    for c in range(factors):  # not by slices: numba takes two seconds to compile an assignment to one
        start[c] = U_prior[c]
    if biases:
        start[factors] = U_prior[factors + 1]
    for client in clients:
        first, last = indptr[client], indptr[client + 1]
        for a in range(size):
            moment[a] = 0.0
            for b in range(size):
                gram[a, b] = mean_item[a] * mean_item[b]
        for group in range(first, last, 4):
            for number in range(last - group, 4):
                targets[number] = 0.0
                for c in range(size):
                    rows[number, c] = 0.0
            for at in range(group, min(group + 4, last)):
                number, row = at - group, items[at]
                target = levels[codes[at]] - mean
                for c in range(factors):
                    rows[number, c] = V[row, c]
                    target -= V[row, c] * start[c]
                if biases:
                    rows[number, factors] = 1.0
                    target -= V[row, factors] + start[factors]
                targets[number] = target
            _add_four(rows, targets, gram, moment)
        decay = max(regularisation * (last - first) + floor, 1e-9)
        for a in range(size):
            gram[a, a] += decay
        _solve(gram, moment)
        for c in range(factors):
            out[client, c] = start[c] + moment[c]
        if biases:
            out[client, factors] = 1.0
            out[client, factors + 1] = start[factors] + moment[factors]


@section
def _add_four(rows: Any, targets: Any, gram: Any, moment: Any) -> None:
    """Add four rows to the upper triangle of XᵀX and to Xᵀy: a number of XᵀX is read and written once for all four."""
    row0, row1, row2, row3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
    for a in range(np.uint64(len(moment))):
        x0, x1, x2, x3 = rows[row0, a], rows[row1, a], rows[row2, a], rows[row3, a]
        moment[a] += targets[row0] * x0 + targets[row1] * x1 + targets[row2] * x2 + targets[row3] * x3
        for b in range(a, np.uint64(len(moment))):
            gram[a, b] += x0 * rows[row0, b] + x1 * rows[row1, b] + x2 * rows[row2, b] + x3 * rows[row3, b]


@section
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
