"""A round under a rule that looks at all uploads of an item together: median, trimmed mean, Krum.

``rounds/server.py`` is the readable form. A rule of that kind without a kernel here is run by its own file, on uploads
from the fast engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation.krum import TIE
from fedrecplus.config.settings import Config
from fedrecplus.fast.compiling import kernel, section
from fedrecplus.fast.sorting import part_at
from fedrecplus.fast.threads import on_threads
from fedrecplus.fast.uploads import uploads_of
from fedrecplus.protocol import BYTES_PER_NUMBER, Upload
from fedrecplus.rounds.server import aggregate_of, apply, spread_of
from fedrecplus.simulation import Problem, RoundReport, SimulationState

_ROWS_PER_CHUNK = 20_000


def robust_round(problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
    """One round of everybody, with uploads kept apart until the rule has seen them all."""
    before, config = state.server, problem.config
    clients = problem.taking_part(before.round)
    state, uploads = uploads_of(problem, state, clients)
    server = apply(before, join_all(problem, state, uploads), spread_of(uploads, before, config), config)
    down = len(clients) * BYTES_PER_NUMBER * before.V.size
    report = RoundReport(len(clients), sum(upload.bytes for upload in uploads), down)
    return replace(state, server=server), report


def join_all(problem: Problem, state: SimulationState, uploads: Sequence[Upload]) -> NDArray[Any]:
    """What the uploads amount to, by a kernel where there is one. See ``rounds/server.py``."""
    rule = problem.config.aggregation.rule
    if rule not in _KERNELS or not uploads:
        return aggregate_of(state.server, uploads, problem.config)
    return by_item(uploads, state.server.V.shape, problem.config)


def by_item(uploads: Sequence[Upload], shape: tuple[int, ...], settings: Config) -> NDArray[np.float64]:
    """The aggregate of the rule's own file in ``aggregation/``, with the items dealt out to threads."""
    items = np.concatenate([upload.items for upload in uploads])
    delta = np.concatenate([upload.delta for upload in uploads])
    order = np.argsort(items, kind="stable")
    places = np.searchsorted(items[order], np.arange(shape[0] + 1))
    table = np.zeros(shape)
    run, trim = _KERNELS[settings.aggregation.rule], settings.aggregation.trim
    if settings.aggregation.rule == "coordinate-median":
        trim = 0.5  # what is left of a mean when all but the one or two in the middle are cut off

    def work(part: NDArray[np.int64]) -> None:
        run(part, places, order, delta, trim, TIE, table)

    cuts = np.searchsorted(places, np.arange(_ROWS_PER_CHUNK, len(items), _ROWS_PER_CHUNK))
    on_threads(work, [part for part in np.split(np.arange(shape[0]), cuts) if len(part)])
    return table


@kernel
def _trimmed(part: Any, places: Any, order: Any, delta: Any, trim: float, tie: float, table: Any) -> None:
    """See ``aggregation/trimmed_mean.py`` and ``aggregation/coordinate_median.py``."""
    for item in part:
        first, n = places[item], places[item + 1] - places[item]
        if n == 0:
            continue
        cut = min(np.int64(trim * n), (n - 1) // 2)
        column = np.empty(n)
        for c in range(delta.shape[1]):
            for j in range(n):
                column[j] = delta[order[first + j], c]
            if cut > 0:
                part_at(column, n, cut)
                part_at(column, n, n - cut - 1)
            total = 0.0
            for j in range(cut, n - cut):
                total += column[j]
            table[item, c] = total / (n - 2 * cut)


@kernel
def _krum(part: Any, places: Any, order: Any, delta: Any, trim: float, tie: float, table: Any) -> None:
    """See ``aggregation/krum.py``."""
    width = delta.shape[1]
    for item in part:
        first, n = places[item], places[item + 1] - places[item]
        if n == 0:
            continue
        kept = n - min(np.int64(trim * n), (n - 1) // 2)
        score, parted = np.empty(n), np.empty(n)
        _scores(delta, order, first, n, max(kept - 2, 1) if kept < n else 0, score)
        for j in range(n):
            parted[j] = score[j]
        limit = part_at(parted, n, kept - 1)
        voters = 0
        for j in range(n):
            if score[j] <= limit + tie * abs(limit):
                voters += 1
                for c in range(width):
                    table[item, c] += delta[order[first + j], c]
        for c in range(width):
            table[item, c] /= voters


@section
def _scores(delta: Any, order: Any, first: int, n: int, neighbours: int, score: Any) -> None:
    """Sums of the squared distances to the nearest others, to none where all are kept. See ``aggregation/krum.py``."""
    width = delta.shape[1]
    columns = np.empty((width, n))
    for j in range(n):
        score[j] = 0.0
        for c in range(width):
            columns[c, j] = delta[order[first + j], c]
    if neighbours == 0:
        return
    distances = np.empty(n)
    for j in range(n):
        for other in range(n):
            distances[other] = 0.0
        for c in range(width):
            own = columns[c, j]
            for other in range(n):
                distances[other] += (own - columns[c, other]) * (own - columns[c, other])
        distances[j] = np.inf
        part_at(distances, n, neighbours - 1)
        total = 0.0
        for other in range(neighbours):
            total += distances[other]
        score[j] = total


_KERNELS: dict[str, Callable[..., None]] = {"trimmed-mean": _trimmed, "coordinate-median": _trimmed, "krum": _krum}
