"""Kernel of ``parts/channel/denoising.py``: sums without pseudo rows, and what the messages would have cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays.compiling import kernel
from fedrecplus.engines.fast.drawing import Clients
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import RoundReport
from fedrecplus.parts.channel.denoising import denoisers
from fedrecplus.protocol import BYTES_PER_NUMBER, Broadcast
from fedrecplus.randomness import mix, purpose, to_unit


def weighing(how: Weighing) -> Weighing:
    """Noise that is added and taken out again need not be computed."""
    return how._replace(rated_rows_only=True)


def report_of(problem: Problem, message: Broadcast, clients: Clients, pseudo: PseudoRows) -> RoundReport:
    """Bytes of the messages that ``exchange`` makes, counted from their sizes."""
    columns, config = message.V.shape[1], problem.config
    rows = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
    chosen = denoisers(clients, message.round, config.seed, config.channel.settings)
    ordinary = np.setdiff1d(clients, chosen)
    noise = BYTES_PER_NUMBER * int(np.diff(pseudo.indptr)[ordinary].sum()) * (1 + columns)
    plain = BYTES_PER_NUMBER * int(rows[ordinary].sum()) * (1 + columns)
    summed = BYTES_PER_NUMBER * _denoiser_rows(problem, message.round, chosen, ordinary, pseudo) * (2 + columns)
    down = len(clients) * message.bytes
    return RoundReport(len(clients), plain + noise + summed, down + noise)


def _denoiser_rows(problem: Problem, round_number: int, chosen: Clients, ordinary: Clients, pseudo: PseudoRows) -> int:
    """Rows that denoising clients upload: their own rated items and those they were told of, each once."""
    # the same draw as ``denoiser_of``, for all ordinary clients
    with np.errstate(over="ignore"):
        keyed = mix(problem.secrets[ordinary], np.uint64(purpose("denoiser")))
        draws = to_unit(mix(keyed, np.uint64(round_number)))
    choice = (draws * len(chosen)).astype(np.int64)
    order = np.argsort(choice, kind="stable")
    bounds = np.searchsorted(choice[order], np.arange(len(chosen) + 1))
    ratings = problem.ratings
    told_by = ordinary[order]
    return int(
        _count_rows(
            chosen, told_by, bounds, ratings.indptr, ratings.items, pseudo.indptr, pseudo.items, ratings.item_count
        )
    )


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
