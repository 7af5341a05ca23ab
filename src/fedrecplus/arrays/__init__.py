"""Arrays with leading batch axes, in NumPy or torch: one client is a batch of none.

What the array standard lacks is here, with one module per namespace behind it. Of many clients at once, who differ in
how many rows they have, the shorter ones are padded: item −1 is no row, and counts nowhere.
"""

from __future__ import annotations

import importlib
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

NOTHING = -1
"""the item of a row that is only there because another client of the batch has more"""


def namespace(array: Any) -> Any:
    """The array standard's functions for such an array."""
    return array_api_compat.array_namespace(array)


def like(array: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The numbers of a NumPy array where another array is, in its precision."""
    return _of(other).like(array, other)  # type: ignore[no-any-return]


def rows_of(table: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """The table's rows of items (…, n), zero where there is none.

    >>> rows_of(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 0], [1, NOTHING]])).tolist()
    [[[3.0, 4.0], [1.0, 2.0]], [[3.0, 4.0], [0.0, 0.0]]]
    """
    return _of(table).rows_of(table, items)  # type: ignore[no-any-return]


def solve(gram: NDArray[Any], moment: NDArray[Any], columns: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """G⁻¹m of positive definite matrices G (…, size, size), and the last columns of G⁻¹.

    >>> solution, inverse = solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0]), columns=1)
    >>> solution.tolist(), inverse.tolist()
    ([0.5, 0.25], [[0.0], [0.25]])
    """
    return _of(gram).solve(gram, moment, columns)  # type: ignore[no-any-return]


def add_to_diagonal(matrices: NDArray[Any], values: Any) -> NDArray[Any]:
    """Matrices (…, size, size) with values (…, size), or one number, added to the diagonals."""
    xp, size = namespace(matrices), matrices.shape[-1]
    unit = xp.eye(size, dtype=matrices.dtype, device=array_api_compat.device(matrices))
    return matrices + (values[..., None] if np.ndim(values) else values) * unit  # type: ignore[no-any-return]


def _of(array: Any) -> Any:
    """The module with the primitives of an array's namespace."""
    name = "numpy_arrays" if isinstance(array, np.ndarray) else "torch_arrays"
    return importlib.import_module(f"fedrecplus.arrays.{name}")
