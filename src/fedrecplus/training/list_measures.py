"""What a list is worth: one number per client and measure, from where its relevant items are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Hits = NDArray[np.bool_]
"""clients × places of the list: whether a relevant item is there"""


def _ndcg(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """Σ_hits 1/log₂(place + 1) over what the best list would have. After: Järvelin and Kekäläinen 2002"""
    discount = 1.0 / np.log2(np.arange(2, depth + 2))
    ideal = np.cumsum(discount)[np.minimum(relevant, depth) - 1]
    return np.asarray(hits @ discount / ideal)


def _recall(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """The share of the relevant items that is on the list."""
    return np.asarray(hits.sum(axis=1) / relevant)


def _precision(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """The share of the list's places with a relevant item."""
    return np.asarray(hits.sum(axis=1) / depth)


def _hit_rate(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """Whether any relevant item is on the list."""
    return np.asarray(hits.any(axis=1), dtype=np.float64)


def _average_precision(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """Σ_hits precision up to that place, over what the best list would have."""
    precision = np.cumsum(hits, axis=1) / np.arange(1, depth + 1)
    return np.asarray((hits * precision).sum(axis=1) / np.minimum(relevant, depth))


def _reciprocal_rank(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """1 over the place of the first relevant item; 0 where none is on the list."""
    return np.where(hits.any(axis=1), 1.0 / (hits.argmax(axis=1) + 1.0), 0.0)


MEASURES: dict[str, Callable[[Hits, NDArray[np.int64], int], Array]] = {
    "ndcg": _ndcg,
    "recall": _recall,
    "precision": _precision,
    "hr": _hit_rate,
    "map": _average_precision,
    "mrr": _reciprocal_rank,
}
"""each of one client's list; results have their means over clients"""
