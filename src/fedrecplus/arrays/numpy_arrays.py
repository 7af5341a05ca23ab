"""The primitives in NumPy. A batch goes through a numba kernel where that was measured to pay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def like(array: Array, other: Array) -> Array:
    """In the other's precision."""
    return array.astype(other.dtype, copy=False)


def in_numpy(array: Array) -> Array:
    """As it is."""
    return array


def rows_of(table: Array, items: NDArray[np.integer[Any]]) -> Array:
    """See ``arrays.rows_of``."""
    rows = table.take(items, axis=0, mode="wrap")
    rows[items < 0] = 0
    return rows


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
