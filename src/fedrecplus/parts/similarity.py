"""Cosine similarity between encoded items, rounded so that ties are ties in every engine.

Clients in batches look cosines up in a table of all items; in NumPy by numba kernels (``arrays/kernels.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays import (
    NOTHING,
    Array,
    Items,
    compiled,
    greatest_rows,
    namespace,
    remember_last,
    rows_of,
    zeros,
)

DECIMALS = 10
"""similarities closer than this are the same; the lower item number then comes first"""
LARGEST_TABLE = 4_096
"""items up to which all similarities are kept (128 MB)"""
_OPPOSITE, _LEAST = -1.0, -2.0
"""the smallest cosine, and less than any"""


def similarity_matrix(first: Array, second: Array) -> Array:
    """Sim(E_r, E_un) for all pairs of rows (…, m, c) and (…, n, c), which have length one. Paper: Eq. (9)"""
    xp, grid = namespace(first), 10.0**DECIMALS
    return xp.round(first @ xp.matrix_transpose(second) * grid) / grid  # type: ignore[no-any-return]


def unit_rows(E: Array) -> Array:
    """Rows of length one, so that a product of rows is their cosine; zero rows stay zero."""
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    unit: Array = np.divide(E, lengths, out=np.zeros_like(E, dtype=np.float64), where=lengths > 0)
    return unit


def likeness_to_rated(features: Array, rated: Items) -> Array:
    """Every item's greatest cosine with one of the rated items (…, n): (…, items), −1 where nothing is rated."""
    xp = namespace(features)
    if rated.ndim > 1 and len(features) <= LARGEST_TABLE:
        return greatest_rows(table_of(features), rated, _OPPOSITE)
    if rated.ndim > 1:
        return xp.stack([likeness_to_rated(features, line) for line in rated])  # type: ignore[no-any-return]
    own = rated[rated > NOTHING]
    if len(own) == 0:
        return zeros((len(features),), features) + _OPPOSITE
    return xp.max(similarity_matrix(features, features[own]), axis=-1)  # type: ignore[no-any-return]


def nearest_rated(features: Array, items: Items, rated: Items) -> Items:
    """For each item (…, m) the place of the rated one (…, n) with the greatest cosine, the first of equal ones."""
    xp = namespace(features)
    if isinstance(features, np.ndarray) and items.ndim == 2 and len(features) <= LARGEST_TABLE:
        places = np.zeros(items.shape, np.int64)
        compiled().nearest_places(table_of(features), items, rated, places)
        return places
    cosines = similarity_matrix(rows_of(features, items), rows_of(features, rated))
    return xp.argmax(xp.where((rated > NOTHING)[..., None, :], cosines, _LEAST), axis=-1)  # type: ignore[no-any-return]


@remember_last
def table_of(features: Array) -> Array:
    """All similarities, once for all clients of a round."""
    table: Any = similarity_matrix(features, features)
    return np.ascontiguousarray(table) if isinstance(table, np.ndarray) else table
