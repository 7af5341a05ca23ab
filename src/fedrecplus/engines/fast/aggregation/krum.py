"""Kernel of ``parts/aggregation/krum.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel, section
from fedrecplus.engines.fast.aggregation._by_item import by_item
from fedrecplus.engines.fast.sorting import part_at
from fedrecplus.parts.aggregation.krum import TIE, Settings
from fedrecplus.protocol import Broadcast, Upload


def aggregate(uploads: Sequence[Upload], message: Broadcast, options: Settings) -> NDArray[np.float64]:
    """See ``_krum``."""
    return by_item(_krum, options.hostile, uploads, message.V.shape)


@kernel
def _krum(part: Any, places: Any, order: Any, delta: Any, hostile: float, table: Any) -> None:
    """The mean of the rows with the best scores."""
    width = delta.shape[1]
    for item in part:
        first, n = places[item], places[item + 1] - places[item]
        if n == 0:
            continue
        kept = n - min(np.int64(hostile * n), (n - 1) // 2)
        score, parted = np.empty(n), np.empty(n)
        _scores(delta, order, first, n, max(kept - 2, 1) if kept < n else 0, score)
        for j in range(n):
            parted[j] = score[j]
        limit = part_at(parted, n, kept - 1)
        voters = 0
        for j in range(n):
            if score[j] <= limit + TIE * abs(limit):
                voters += 1
                for c in range(width):
                    table[item, c] += delta[order[first + j], c]
        for c in range(width):
            table[item, c] /= voters


@section
def _scores(delta: Any, order: Any, first: int, n: int, neighbours: int, score: Any) -> None:
    """Sums of the squared distances to the nearest others, to none where all are kept."""
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
