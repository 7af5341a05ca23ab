"""The pseudo rows of a round, for all its clients: kept, or chosen and rated by the rules' own files, in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING, remember_last
from fedrecplus.device import Device
from fedrecplus.engines.fast import fused
from fedrecplus.engines.fast.rows import (
    ROWS,
    PseudoRows,
    Rated,
    batches_of,
    device_batch,
    in_rows,
    put_back,
    rated_rows,
)
from fedrecplus.engines.interface import Clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.virtual_ratings import Predict
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import predictions_of, select_items, virtual_ratings
from fedrecplus.workers import on_threads

_ROWS, _GROWTH = 4 * ROWS, 2.0
"""of a batch: larger than where models train, since here a call costs as much as the padding of many rows"""
_MOST_KEPT = 1 << 22
"""ratings that are kept in batches from round to round: some 60 MB"""


def pseudo_rows(
    problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
) -> tuple[PrivateState, PseudoRows]:
    """The pseudo rows of these clients, and the private state with those that are kept."""
    dtype, indptr = message.V.dtype, problem.pseudo_indptr
    levels, places = problem.levels.astype(dtype), int(problem.pseudo_indptr[-1])
    if places == 0:
        nothing = np.zeros(0, dtype=problem.ratings.items.dtype)
        return private, PseudoRows(indptr, nothing, np.zeros(0, dtype=dtype), levels)
    redraw, refresh = problem.config.redraws, problem.config.refreshes
    newcomers = clients if redraw else clients[~private.drawn[clients]]
    items = np.zeros(places, dtype=problem.ratings.items.dtype) if redraw else private.pseudo_items
    ratings = np.zeros(places, dtype=dtype) if refresh else private.virtual_ratings
    items = items if redraw or len(newcomers) == 0 else items.copy()
    ratings = ratings if refresh or len(newcomers) == 0 else ratings.copy()
    choose_and_rate(problem, private, message, newcomers, items, ratings, choosing=True)
    if refresh and len(newcomers) < len(clients):
        others = clients[private.drawn[clients]]
        choose_and_rate(problem, private, message, others, items, ratings, choosing=False)
    private = private.with_kept(problem.config, newcomers, items, ratings)
    return private, PseudoRows(indptr, items, ratings, levels)


def choose_and_rate(
    problem: Problem,
    private: PrivateState,
    message: Broadcast,
    clients: Clients,
    items: NDArray[Any],
    ratings: NDArray[Any],
    choosing: bool,
) -> None:
    """Write these clients' pseudo items, if they are chosen now, and their virtual ratings to their places."""
    indptr, predict = problem.pseudo_indptr, predictor_of(problem, message)
    counts = np.diff(indptr)

    def work(batch: tuple[Clients, Rated | None]) -> None:
        run, rated = batch
        device = device_batch(problem, private.U, run, message.V.dtype, rated)
        if choosing:
            chosen = select_items(counts[run], device, message, problem.config)
            put_back(run, indptr, chosen, items)
        else:
            chosen = in_rows(items, run, indptr, NOTHING)
        virtual = virtual_ratings(chosen, device, message, problem.config, predict(device))
        put_back(run, indptr, virtual, ratings)

    on_threads(work, rated_batches(problem, clients, message.V.dtype))


@remember_last
def rated_batches(problem: Problem, clients: Clients, dtype: Any) -> list[tuple[Clients, Rated | None]]:
    """Clients in batches, beside what they have rated where that is little enough to be kept for the next round."""
    rated = np.diff(problem.ratings.indptr)
    runs = batches_of(clients, rated + np.diff(problem.pseudo_indptr), rated, _ROWS, _GROWTH)
    kept = len(problem.ratings) <= _MOST_KEPT
    return [(run, rated_rows(problem, run, dtype) if kept else None) for run in runs]


def predictor_of(problem: Problem, message: Broadcast) -> Callable[[Device], Predict]:
    """The clients' own predictions, by the fused steps of the model where it has them."""
    if fused.serves(problem.config.model):
        return lambda device: lambda items, steps=0: fused.predict(problem, device, message, items, steps)
    return lambda device: predictions_of(device, message, problem.config)
