"""All uploads of a round, item by item: robust rules look at one row of V at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.protocol import Upload


def sorted_rows(uploads: Sequence[Upload]) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
    """The rows of all uploads, those of an item together: the uploaded items, the rows, and where each item's begin."""
    items = np.concatenate([np.zeros(0, np.int64), *(upload.items for upload in uploads)])
    order = np.argsort(items, kind="stable")
    known, starts = np.unique(items[order], return_index=True)
    return known, np.concatenate([upload.delta for upload in uploads])[order], starts


def weighted_means(rows: Array, weights: Array, starts: NDArray[np.int64]) -> Array:
    """Each item's weighted mean of its rows; zero where all weights are."""
    total, of_item = np.add.reduceat(weights[:, None] * rows, starts), np.add.reduceat(weights, starts)[:, None]
    return np.divide(total, of_item, out=np.zeros_like(total), where=of_item > 0)


def rows_by_item(uploads: Sequence[Upload]) -> Iterator[tuple[int, Array]]:
    """Each uploaded item with the rows that clients sent for it, a line per client.

    Ours: robust rules are written for whole models that everybody sends. Here a client sends the rows of its own
    items, so each item has its own set of voters, and a rule is applied per item.
    """
    if uploads:
        items, rows, starts = sorted_rows(uploads)
        yield from zip(items.tolist(), np.split(rows, starts[1:]), strict=False)
