"""The uploads of many clients, one by one: what a silo sends. ``rounds/client.py`` is the readable form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.fast.engine import _rows, _steps, _weighing
from fedrecplus.fast.local_training import train_clients
from fedrecplus.fast.pseudo import PseudoRows, pseudo_rows
from fedrecplus.fast.threads import chunks, on_threads
from fedrecplus.fast.updates import left_by_decay
from fedrecplus.protocol import Upload
from fedrecplus.simulation import Problem, SimulationState


def uploads_of(
    problem: Problem, state: SimulationState, clients: NDArray[np.int64]
) -> tuple[SimulationState, list[Upload]]:
    """Local training of these clients: the state with their new factors, and what each would send unweighted."""
    state, pseudo = pseudo_rows(problem, state, clients)
    U, V = state.U.copy(), state.server.V
    count = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
    steps = _steps(problem, state)
    left = left_by_decay(V, steps)
    how = _weighing(problem, state, left, state.server.last_step, dry=True)

    def work(some: NDArray[np.int64]) -> list[Upload]:
        total, per_item, spread = np.zeros_like(V), np.zeros(len(V)), np.zeros_like(state.server.last_spread)
        rows = _rows(problem, pseudo, int(count[some].max()))
        uploads = []
        for number in range(len(some)):
            train_clients(some[number : number + 1], rows, steps, how, V, U, True, total, per_item, spread)
            items = items_of(problem, pseudo, int(some[number]))
            uploads.append(Upload(int(some[number]), items, (total[items] + left[items]).astype(np.float64)))
            total[items] = 0.0
        return uploads

    uploads = [upload for part in on_threads(work, chunks(clients, count)) for upload in part]
    return replace(state, U=U), uploads


def items_of(problem: Problem, pseudo: PseudoRows, client: int) -> NDArray[np.int64]:
    """A client's rated and pseudo items together, ascending."""
    rated = problem.ratings.items[problem.ratings.indptr[client] : problem.ratings.indptr[client + 1]]
    unrated = pseudo.items[pseudo.indptr[client] : pseudo.indptr[client + 1]]
    return np.sort(np.concatenate([rated.astype(np.int64), unrated.astype(np.int64)]))
