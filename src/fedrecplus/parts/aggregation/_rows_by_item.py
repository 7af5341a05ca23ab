"""All uploads of a round, item by item: robust rules look at one row of V at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.protocol import Upload

Array = NDArray[np.float64]


def rows_by_item(uploads: Sequence[Upload]) -> Iterator[tuple[int, Array]]:
    """Each uploaded item with the rows that clients sent for it, a line per client.

    Ours: robust rules are written for whole models that everybody sends. Here a client sends the rows of its own
    items, so each item has its own set of voters, and a rule is applied per item.
    """
    if not uploads:
        return
    items = np.concatenate([upload.items for upload in uploads])
    delta = np.concatenate([upload.delta for upload in uploads])
    order = np.argsort(items, kind="stable")
    starts = np.flatnonzero(np.diff(items[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        if len(rows):
            yield int(items[rows[0]]), delta[rows]
