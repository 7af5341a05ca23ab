"""The primitives in NumPy. A batch goes through a numba kernel where that was measured to pay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.randomness import mix as mixed, to_unit as in_units

Array = NDArray[Any]


def like(array: Array, other: Array) -> Array:
    """In the other's precision."""
    return array.astype(other.dtype, copy=False)


def in_numpy(array: Array) -> Array:
    """As it is."""
    return array


def rows_of(table: Array, items: NDArray[np.integer[Any]]) -> Array:
    """See ``arrays.rows_of``."""
    if table.size == 0:  # NumPy wraps around no rows for ever
        return np.zeros((*items.shape, *table.shape[1:]), table.dtype)
    rows = table.take(items, axis=0, mode="wrap")
    rows[items < 0] = 0
    return rows


def greatest_rows(table: Array, items: NDArray[np.integer[Any]], least: float) -> Array:
    """See ``arrays.greatest_rows``."""
    from fedrecplus.arrays import kernels  # here: see ``solve``

    greatest = np.full((len(items), table.shape[1]), least, table.dtype)
    kernels.greatest_rows(table, items, greatest)
    return greatest


def marked(items: Array, count: int) -> NDArray[np.bool_]:
    """See ``arrays.marked``; one more place takes what is no item, and goes."""
    mask = np.zeros((*items.shape[:-1], count + 1), np.bool_)
    np.put_along_axis(mask, items, True, axis=-1)
    return mask[..., :count]


def places_of(mask: NDArray[np.bool_], width: int) -> NDArray[np.int64]:
    """See ``arrays.places_of``."""
    *lines, place = np.nonzero(mask)
    places = np.full((*mask.shape[:-1], width), -1)
    order = np.cumsum(mask, axis=-1)[mask] - 1
    places[(*lines, order)] = place
    return places


def cumulative(values: Array) -> Array:
    """Sums up to each place of the last axis."""
    return np.cumsum(values, axis=-1)


def mix(key: Any, indices: Any) -> NDArray[np.uint64]:
    """See ``randomness.mix``; arrays wrap silently, where NumPy warns of scalars."""
    keys: NDArray[np.uint64] = mixed(key, np.atleast_1d(indices).astype(np.uint64))
    return keys


def to_unit(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """See ``randomness.to_unit``."""
    units: NDArray[np.float64] = in_units(keys)
    return units


def solve(gram: Array, moment: Array, columns: int) -> tuple[Array, Array]:
    """See ``arrays.solve``."""
    if gram.ndim == 2:
        inverse = np.linalg.inv(gram)
        return inverse @ moment, inverse[:, gram.shape[1] - columns :]
    from fedrecplus.arrays import kernels  # here: a node solves for one client at a time, and must not wait for numba

    return kernels.solve(gram, moment, columns)


def diagonal(matrices: Array) -> Array:
    """The diagonals of matrices, to be written to."""
    view: Array = np.einsum("...ii->...i", matrices)
    return view
