"""Cosines of encoded items: the table of all where it is small, sorted lists of neighbours where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import inner, section
from fedrecplus.engines.fast.chunks import on_threads
from fedrecplus.parts.similarity import similarity

LARGEST_TABLE = 4_096
"""items up to which all similarities are kept (128 MB) and neighbour lists are whole"""
CACHED_NUMBERS = 60_000
"""so many stay in a cache while one operation after the other goes over them"""
_CUT_LENGTH = 1_024
_BLOCK_NUMBERS = 8_000_000


@inner
def cosine(first: int, second: int, features: Any) -> float:
    """The rounded cosine of two unit rows. See ``parts/similarity.py``."""
    total = 0.0
    for c in range(features.shape[1]):
        total += features[first, c] * features[second, c]
    return float(np.rint(total * 1e10) / 1e10)


@section
def alike(first: int, second: int, table: Any, features: Any) -> float:
    """The rounded cosine of two items: looked up where there is a table, computed where there is none."""
    if table.shape[0] > 0:
        return float(table[first, second])
    return float(cosine(first, second, features))


def likeness_table(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """All similarities where the table is small; empty where they must be computed as needed."""
    return similarity(features, features) if 0 < len(features) <= LARGEST_TABLE else np.zeros((0, 0))


@dataclass(frozen=True)
class Neighbours:
    """Item i's neighbours by descending likeness, ties by item number; cut after some where there are many items."""

    items: NDArray[Any]
    likeness: NDArray[np.float64]


def neighbour_lists(features: NDArray[np.float64], length: int = 0) -> Neighbours:
    """The sorted neighbour lists, of a given length or as long as fits; built in blocks, so that 62,000 items fit.

    >>> lists = neighbour_lists(np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]))
    >>> lists.items[0].tolist()
    [0, 2, 1]
    """
    items = len(features)
    length = min(items, length or (items if items <= LARGEST_TABLE else _CUT_LENGTH))
    kind = np.uint16 if items <= 65_536 else np.int32
    lists = Neighbours(np.empty((items, length), dtype=kind), np.empty((items, length)))
    block = max(1, _BLOCK_NUMBERS // items)

    def fill(first: int) -> None:
        part = slice(first, min(first + block, items))
        likeness = similarity(features[part], features)
        order = _longest_first(likeness, length)
        lists.items[part] = order
        lists.likeness[part] = np.take_along_axis(likeness, order, axis=1)

    on_threads(fill, range(0, items, block))
    return lists


def _longest_first(likeness: NDArray[np.float64], length: int) -> NDArray[np.int64]:
    if length == likeness.shape[1]:
        return np.argsort(-likeness, axis=1, kind="stable")
    # ties at the cut would be cut by chance: rank (likeness, −item) pairs, as one number each
    items = likeness.shape[1]
    ranks = -np.rint(likeness * 1e10) * items + np.arange(items)
    best = np.argpartition(ranks, length, axis=1)[:, :length]
    within = np.argsort(np.take_along_axis(ranks, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, within, axis=1)
