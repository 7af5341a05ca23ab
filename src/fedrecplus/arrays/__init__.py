"""Arrays with leading batch axes, in NumPy or torch: one client is a batch of none.

What the array standard lacks is here, with one module per namespace behind it. Of many clients at once, who differ in
how many rows they have, the shorter ones are padded: item −1 is no row, and counts nowhere.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import numpy_arrays
from fedrecplus.lazy import lazily
from fedrecplus.randomness import purpose, subkey as subkey_of_one, uniform as uniform_of_one

if TYPE_CHECKING:
    from fedrecplus.arrays.compiling import (
        exact_kernel as exact_kernel,
        inner as inner,
        kernel as kernel,
        mix as mix,
        section as section,
        to_unit as to_unit,
    )

P = ParamSpec("P")
Result = TypeVar("Result")
Array = NDArray[np.float64]
Items = NDArray[np.int64]
NOTHING = -1
"""the item of a row that is only there because another client of the batch has more"""


def namespace(array: Any) -> Any:
    """The array standard's functions for such an array."""
    return np if isinstance(array, np.ndarray) else array_api_compat.array_namespace(array)


def like(array: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The numbers of a NumPy array where another array is, in its precision."""
    return _of(other).like(array, other)  # type: ignore[no-any-return]


def in_numpy(array: Any) -> NDArray[Any]:
    """An array's numbers in NumPy, wherever they are."""
    return _of(array).in_numpy(array)  # type: ignore[no-any-return]


def zeros(shape: tuple[int, ...], other: NDArray[Any]) -> NDArray[Any]:
    """Zeros where another array is, in its precision."""
    where = array_api_compat.device(other)
    return namespace(other).zeros(shape, dtype=other.dtype, device=where)  # type: ignore[no-any-return]


def rows_of(table: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """The table's rows of items (…, n), zero where there is none; of a vector, its numbers.

    >>> rows_of(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 0], [1, NOTHING]])).tolist()
    [[[3.0, 4.0], [1.0, 2.0]], [[3.0, 4.0], [0.0, 0.0]]]
    """
    return _of(table).rows_of(table, items)  # type: ignore[no-any-return]


def greatest_rows(table: NDArray[Any], items: NDArray[Any], least: float) -> NDArray[Any]:
    """Number by number the greatest of the table's rows of items (lines, n): (lines, columns), ``least`` of none.

    >>> greatest_rows(np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([[1, 0], [NOTHING, NOTHING]]), -1.0).tolist()
    [[3.0, 2.0], [-1.0, -1.0]]
    """
    return _of(table).greatest_rows(table, items, least)  # type: ignore[no-any-return]


def own_rows(tables: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """Rows of items (…, n) of each one's own table (…, items, columns), zero where there is none.

    >>> own_rows(np.array([[[1.0], [2.0]], [[3.0], [4.0]]]), np.array([[1, 0], [1, NOTHING]])).tolist()
    [[[2.0], [1.0]], [[4.0], [0.0]]]
    """
    gathered = zeros((*items.shape, tables.shape[-1]), tables)
    present = namespace(items).nonzero(items >= 0)
    gathered[present] = tables[(*present[:-1], items[present])]
    return gathered


def put_rows(tables: NDArray[Any], items: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Each one's own table with other rows of items.

    >>> put_rows(np.zeros((3, 1)), np.array([2, NOTHING]), np.array([[5.0], [7.0]])).tolist()
    [[0.0], [0.0], [5.0]]
    """
    tables = namespace(tables).asarray(tables, copy=True)
    present = namespace(items).nonzero(items >= 0)
    tables[(*present[:-1], items[present])] = rows[present]
    return tables


def own_values(tables: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Of each client's own numbers (…, n), those at places (…, m), the first where a place is none.

    >>> own_values(np.array([[5.0, 7.0], [6.0, 8.0]]), np.array([[1, 1, 0], [0, 1, NOTHING]])).tolist()
    [[7.0, 7.0, 5.0], [6.0, 8.0, 6.0]]
    """
    xp = namespace(tables)
    return xp.take_along_axis(tables, xp.clip(places, 0, None), axis=-1)  # type: ignore[no-any-return]


def marked(items: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Which of so many items are among (…, n).

    >>> marked(np.array([[1, 0], [1, NOTHING]]), 3).tolist()
    [[True, True, False], [False, True, False]]
    """
    return _of(items).marked(items, count)  # type: ignore[no-any-return]


def places_of(mask: NDArray[np.bool_], width: int) -> NDArray[np.int64]:
    """Where a mask is true, ascending, as (…, width) with ``NOTHING`` after the last.

    >>> places_of(np.array([[False, True, True], [False, True, False]]), 2).tolist()
    [[1, 2], [1, -1]]
    """
    return _of(mask).places_of(mask, width)  # type: ignore[no-any-return]


def greatest(scores: NDArray[Any], count: Any) -> NDArray[np.bool_]:
    """Which of (…, n) scores are the ``count`` greatest, a number or one for each line; ties go to the first.

    >>> greatest(np.array([[2.0, 3.0, 2.0], [1.0, 0.0, 5.0]]), np.array([2, 1])).tolist()
    [[True, True, False], [False, False, True]]
    """
    xp, last = namespace(scores), scores.shape[-1] - 1
    counts = xp.broadcast_to(numbers(count, scores)[..., None], (*scores.shape[:-1], 1))
    least = own_values(xp.sort(scores, axis=-1), xp.clip(last + 1 - counts, None, last))
    above = scores > least
    ties = (scores == least) & (counts > 0)
    return above | (ties & (cumulative(ties) <= counts - cumulative(above)[..., -1:]))  # type: ignore[no-any-return]


def cumulative(values: NDArray[Any]) -> NDArray[Any]:
    """Sums up to each place of the last axis."""
    return _of(values).cumulative(values)  # type: ignore[no-any-return]


def numbers(values: Any, other: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers in an array where another one is."""
    xp = namespace(other)
    return xp.asarray(values, dtype=xp.int64, device=array_api_compat.device(other))  # type: ignore[no-any-return]


def subkey(key: Any, *names: Any) -> Any:
    """The key for a purpose, of one client or, by arrays of keys, of many: the same for each as ``randomness.subkey``.

    A name is a word, a number, or an array with a number for each key.

    >>> subkey(np.array([7, 8], np.uint64), "groups", 3)[1] == subkey(8, "groups", 3)
    np.True_
    """
    if isinstance(key, int | bytes):
        return subkey_of_one(key, *(name if isinstance(name, str) else int(name) for name in names))
    for name in names:
        key = _of(key).mix(key, purpose(name) if isinstance(name, str) else name)
    return key


def keys_of(key: Any, items: NDArray[Any]) -> Any:
    """A key for each item (…, n), of arrays of keys (…)."""
    return _of(items).mix(key[..., None], items)


def uniform(key: Any, indices: NDArray[Any]) -> NDArray[np.float64]:
    """Draws from [0, 1), one per index (…, n), by one client's key or by arrays of keys (…).

    >>> uniform(np.array([7, 8], np.uint64), np.array([3, 5]))[0, 1] == uniform(7, np.array([5]))[0]
    np.True_
    """
    if isinstance(key, int | bytes):
        return uniform_of_one(key, indices)
    return _of(indices).to_unit(keys_of(key, indices))  # type: ignore[no-any-return]


def solve(gram: NDArray[Any], moment: NDArray[Any], columns: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """G⁻¹m of positive definite matrices G (…, size, size), and the last columns of G⁻¹.

    >>> solution, inverse = solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0]), columns=1)
    >>> solution.tolist(), inverse.tolist()
    ([0.5, 0.25], [[0.0], [0.25]])
    """
    return _of(gram).solve(gram, moment, columns)  # type: ignore[no-any-return]


def add_to_diagonal(matrices: NDArray[Any], values: Any) -> NDArray[Any]:
    """Add values (…, size), or one number, to the diagonals of matrices (…, size, size), in place."""
    diagonal = _of(matrices).diagonal(matrices)
    diagonal += values
    return matrices


def product(matrices: NDArray[Any], vectors: NDArray[Any]) -> NDArray[Any]:
    """Matrices (…, n, size) times a vector (…, size) each."""
    return (matrices @ vectors[..., None])[..., 0]  # type: ignore[no-any-return]


def outer(errors: NDArray[Any], vectors: NDArray[Any]) -> NDArray[Any]:
    """The outer product (…, n, size) of errors (…, n) and a vector (…, size) each: a row of e_i·u per error.

    By ``einsum``: NumPy's product of broadcast arrays takes 1.4 times as long.
    """
    xp = np if isinstance(errors, np.ndarray) else importlib.import_module("torch")
    return xp.einsum("...n,...c->...nc", errors, vectors)  # type: ignore[no-any-return]


def remember_last(function: Callable[P, Result]) -> Callable[P, Result]:
    """Compute once for the same arguments in a row: what all clients of a round share is asked for by each batch.

    Arguments are the same if they are the same objects: arrays are not compared.
    """
    return _remembering(function, operator.is_)


def remember_equal(function: Callable[P, Result]) -> Callable[P, Result]:
    """As ``remember_last``, where arrays of equal numbers are the same: for what takes longer than to compare them."""
    return _remembering(function, _equal)


def _equal(one: Any, other: Any) -> bool:
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return one is other or (both and one.dtype == other.dtype and np.array_equal(one, other))


def _remembering(function: Callable[P, Result], same: Callable[[Any, Any], bool]) -> Callable[P, Result]:
    last: list[tuple[tuple[Any, ...], Any]] = []

    @functools.wraps(function)
    def remembering(*arguments: P.args, **named: P.kwargs) -> Result:
        given = (*arguments, *named.values())
        for known, result in last:
            if len(known) == len(given) and all(map(same, known, given)):
                return result  # type: ignore[no-any-return]
        result = function(*arguments, **named)
        last[:] = [(given, result)]
        return result

    return remembering


def _of(array: Any) -> Any:
    """The module with the primitives of an array's namespace."""
    return numpy_arrays if isinstance(array, np.ndarray) else _torch_arrays()


@functools.cache
def compiled() -> Any:
    """The kernels of batches in NumPy: imported when there is a batch, since a node's start can't wait for numba."""
    return importlib.import_module("fedrecplus.arrays.kernels")


@functools.cache
def _torch_arrays() -> Any:
    return importlib.import_module("fedrecplus.arrays.torch_arrays")  # here: torch takes seconds to load


lazily(__name__)
