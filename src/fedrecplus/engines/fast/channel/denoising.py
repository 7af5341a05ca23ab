"""What a round costs on the wire, without making the messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.fast.compiling import kernel
from fedrecplus.fast.pseudo import PseudoRows
from fedrecplus.protocol import BYTES_PER_NUMBER
from fedrecplus.randomness import keys, mix, purpose, subkey, to_unit
from fedrecplus.simulation import Problem, RoundReport, SimulationState


def report_of(problem: Problem, state: SimulationState, clients: NDArray[np.int64], pseudo: PseudoRows) -> RoundReport:
    """Bytes of the messages that ``simulation/reference.py`` makes, counted from their sizes."""
    how, columns = problem.config.aggregation, state.server.V.shape[1]
    rows = np.diff(problem.ratings.indptr)[clients] + np.diff(pseudo.indptr)[clients]
    down = len(clients) * BYTES_PER_NUMBER * state.server.V.size
    if how.denoising == 0.0:
        own_weights = len(clients) if how.weigh_on == "client" else 0
        up = BYTES_PER_NUMBER * (int(rows.sum()) * (1 + columns) + own_weights)
        return RoundReport(len(clients), up, down)
    denoisers = problem.denoisers(clients, state.server.round)
    ordinary = np.setdiff1d(clients, denoisers)
    noise = BYTES_PER_NUMBER * int(np.diff(pseudo.indptr)[ordinary].sum()) * (1 + columns)
    plain = BYTES_PER_NUMBER * int(rows[~np.isin(clients, denoisers)].sum()) * (1 + columns)
    summed = _denoiser_rows(problem, state, denoisers, ordinary, pseudo)
    return RoundReport(len(clients), plain + noise + BYTES_PER_NUMBER * summed * (2 + columns), down + noise)


def _denoiser_rows(
    problem: Problem,
    state: SimulationState,
    denoisers: NDArray[np.int64],
    ordinary: NDArray[np.int64],
    pseudo: PseudoRows,
) -> int:
    """Rows that denoising clients upload: their own rated items and those they were told of, each once."""
    secrets = keys(subkey(problem.config.seed, "secrets"), ordinary)
    # the same draw as ``simulation.reference.denoiser_of``, for all ordinary clients
    with np.errstate(over="ignore"):
        draws = to_unit(mix(mix(secrets, np.uint64(purpose("denoiser"))), np.uint64(state.server.round)))
    choice = (draws * len(denoisers)).astype(np.int64)
    order = np.argsort(choice, kind="stable")
    bounds = np.searchsorted(choice[order], np.arange(len(denoisers) + 1))
    return int(
        _count_rows(
            denoisers, ordinary[order], bounds, problem.ratings.indptr, problem.ratings.items,
            pseudo.indptr, pseudo.items, problem.ratings.item_count,
        )
    )  # fmt: skip


@kernel
def _count_rows(
    denoisers: Any,
    told_by: Any,
    bounds: Any,
    indptr: Any,
    items: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    count: int,
) -> int:
    seen = np.full(count, -1, np.int64)
    rows = 0
    for number in range(len(denoisers)):
        own = denoisers[number]
        for at in range(indptr[own], indptr[own + 1]):
            if seen[items[at]] != number:
                seen[items[at]] = number
                rows += 1
        for place in range(bounds[number], bounds[number + 1]):
            client = told_by[place]
            for at in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
                if seen[pseudo_items[at]] != number:
                    seen[pseudo_items[at]] = number
                    rows += 1
    return rows
