"""Private refits of all clients at once. The same result as ``simulation.prediction_factors``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.fast.compiling import kernel
from fedrecplus.fast.threads import chunks, on_threads
from fedrecplus.model import prior
from fedrecplus.simulation import Problem, SimulationState


def prediction_factors(problem: Problem, state: SimulationState) -> NDArray[Any]:
    """Each client's own U or its private refit, as the settings say; a client without ratings keeps its start."""
    config, ratings = problem.config, problem.ratings
    if config.prediction.factors == "own":
        return state.U
    factors = state.U.copy()
    V = state.server.V
    U_prior, _ = prior(config.model, problem.mean)
    scale = ratings.scale
    levels = scale.standardise(scale.values(np.arange(scale.levels)))
    rows = np.diff(ratings.indptr)

    def work(some: NDArray[np.int64]) -> None:
        refit_clients(
            some, ratings.indptr, ratings.items, ratings.codes, levels, V, problem.mean, config.model.factors,
            config.model.biases, U_prior, config.prediction.regularisation, config.prediction.floor, factors,
        )  # fmt: skip

    on_threads(work, chunks(np.flatnonzero(rows > 0), rows))
    return factors


@kernel
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
    regularisation: float,
    floor: float,
    out: Any,
) -> None:
    """Ridge regression of a client's ratings on its rows of V, by Cholesky. See ``rounds/refit.py``."""
    size = factors + int(biases)
    gram = np.empty((size, size))
    moment = np.empty(size)
    x = np.empty(size)
    start = np.empty(size)
    start[:factors] = U_prior[:factors]
    if biases:
        start[factors] = U_prior[factors + 1]
    for client in clients:
        first, last = indptr[client], indptr[client + 1]
        gram[:] = 0.0
        moment[:] = 0.0
        for at in range(first, last):
            row = V[items[at]]
            target = levels[codes[at]] - mean
            for c in range(factors):
                x[c] = row[c]
                target -= row[c] * start[c]
            if biases:
                x[factors] = 1.0
                target -= row[factors] + start[factors]
            for a in range(size):
                moment[a] += target * x[a]
                for b in range(a + 1):
                    gram[a, b] += x[a] * x[b]
        decay = max(regularisation * (last - first) + floor, 1e-9)
        for a in range(size):
            gram[a, a] += decay
        _solve(gram, moment, size)
        for c in range(factors):
            out[client, c] = start[c] + moment[c]
        if biases:
            out[client, factors] = 1.0
            out[client, factors + 1] = start[factors] + moment[factors]


@kernel
def _solve(gram: Any, moment: Any, size: int) -> None:
    """Solve in place, with the lower triangle of a positive definite matrix."""
    for a in range(size):
        for b in range(a + 1):
            total = gram[a, b]
            for c in range(b):
                total -= gram[a, c] * gram[b, c]
            gram[a, b] = np.sqrt(total) if a == b else total / gram[b, b]
    for a in range(size):
        for c in range(a):
            moment[a] -= gram[a, c] * moment[c]
        moment[a] /= gram[a, a]
    for a in range(size - 1, -1, -1):
        for c in range(a + 1, size):
            moment[a] -= gram[c, a] * moment[c]
        moment[a] /= gram[a, a]
