"""Rules that look at all uploads of an item together, with the items dealt out to threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel
from fedrecplus.engines.fast.chunks import on_threads
from fedrecplus.engines.fast.sorting import part_at
from fedrecplus.protocol import Upload

_ROWS_PER_CHUNK = 20_000


def by_item(
    run: Callable[..., None], share: float, uploads: Sequence[Upload], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """A table that a kernel makes of all uploads, item by item."""
    table = np.zeros(shape)
    if not uploads:
        return table
    items = np.concatenate([upload.items for upload in uploads])
    delta = np.concatenate([upload.delta for upload in uploads])
    order = np.argsort(items, kind="stable")
    places = np.searchsorted(items[order], np.arange(shape[0] + 1))

    def work(part: NDArray[np.int64]) -> None:
        run(part, places, order, delta, share, table)

    cuts = np.searchsorted(places, np.arange(_ROWS_PER_CHUNK, len(items), _ROWS_PER_CHUNK))
    on_threads(work, [part for part in np.split(np.arange(shape[0]), cuts) if len(part)])
    return table


@kernel
def trimmed(part: Any, places: Any, order: Any, delta: Any, trim: float, table: Any) -> None:
    """The mean of each column without a share at either end. See ``parts/aggregation/trimmed_mean.py``."""
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
