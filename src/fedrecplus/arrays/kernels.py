"""Primitives of batches in numba, each with what it was measured against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import exact_kernel, section

Array = NDArray[Any]


def solve(gram: Array, moment: Array, columns: int) -> tuple[Array, Array]:
    """G⁻¹m of positive definite matrices, and the last columns of G⁻¹.

    Measured on 943 systems of 59 numbers in 32 bits, with 32 columns: 17 ms, where ``np.linalg.cholesky`` and
    ``np.linalg.inv`` take 130. All else of a posterior is products of matrices, which NumPy gives as fast.
    """
    *batch, size = moment.shape
    count = math.prod(batch)
    solution, inverse = np.empty((count, size), gram.dtype), np.empty((count, size, columns), gram.dtype)
    gram, moment = (np.ascontiguousarray(array, gram.dtype) for array in (gram, moment))
    solve_each(gram.reshape(count, size, size), moment.reshape(count, size), solution, inverse)
    return solution.reshape(*batch, size), inverse.reshape(*batch, size, columns)


@exact_kernel
def solve_each(gram: Any, moment: Any, solution: Any, inverse: Any) -> None:
    """The systems in turn. Sums keep the order of the code, so that no rounding depends on where memory was free."""
    size, columns = np.uint64(gram.shape[1]), np.uint64(inverse.shape[2])
    root = np.empty((gram.shape[1], gram.shape[1]), gram.dtype)
    block = np.zeros((inverse.shape[2], inverse.shape[2]), gram.dtype)
    for number in range(np.uint64(len(gram))):
        for a in range(size):
            solution[number, a] = moment[number, a]
            for b in range(a, size):
                root[a, b] = gram[number, a, b]
        _factorise(root)
        _substitute(root, solution[number])
        if columns > np.uint64(0):
            _invert(root, block, inverse[number])


@section
def _factorise(root: Any) -> None:
    """R of G = RᵀR in place of G's upper triangle; two pivots at a time, so that the rest is read and written once."""
    size, one, two, unit = np.uint64(root.shape[0]), np.uint64(1), np.uint64(2), root.dtype.type(1)
    for k in range(np.uint64(0), size, two):
        n = k + one
        scale = unit / np.sqrt(root[k, k])
        for b in range(k, size):
            root[k, b] *= scale
        if n < size:
            first = root[k, n]
            for b in range(n, size):
                root[n, b] -= first * root[k, b]
            scale = unit / np.sqrt(root[n, n])
            for b in range(n, size):
                root[n, b] *= scale
        for a in range(n + one, size):
            first, second = root[k, a], root[n, a]
            for b in range(a, size):
                root[a, b] -= first * root[k, b] + second * root[n, b]


@section
def _substitute(root: Any, x: Any) -> None:
    """R⁻¹R⁻ᵀx in place of x."""
    size, one = np.uint64(len(x)), np.uint64(1)
    for k in range(size):
        x[k] /= root[k, k]
        for b in range(k + one, size):
            x[b] -= x[k] * root[k, b]
    for back in range(size):
        last = size - one - back
        for b in range(last + one, size):
            x[last] -= root[last, b] * x[b]
        x[last] /= root[last, last]


@section
def _invert(root: Any, block: Any, inverse: Any) -> None:
    """The last columns of R⁻¹R⁻ᵀ: R⁻ᵀ has nothing in them but its last block, and R⁻¹ of that is substituted back."""
    size, columns, one, two = np.uint64(root.shape[0]), np.uint64(inverse.shape[1]), np.uint64(1), np.uint64(2)
    skip, unit, nothing = size - columns, root.dtype.type(1), root.dtype.type(0)
    for k in range(columns):
        for c in range(columns):
            block[k, c] = 0
        block[k, k] = 1
        for j in range(np.uint64(0), k, two):
            first, second = root[skip + j, skip + k], root[skip + j + one, skip + k] if j + one < k else nothing
            for c in range(columns):
                block[k, c] -= first * block[j, c] + second * block[j + one, c]
        scale = unit / root[skip + k, skip + k]
        for c in range(columns):
            block[k, c] *= scale
    for a in range(columns):
        for c in range(columns):
            inverse[skip + a, c] = 0
        for k in range(a, columns):
            for c in range(columns):
                inverse[skip + a, c] += block[k, a] * block[k, c]
    for back in range(skip):
        last = skip - one - back
        for c in range(columns):
            inverse[last, c] = 0
        for j in range(last + one, size, two):
            n = j + one if j + one < size else j
            first, second = root[last, j], root[last, n] if n > j else nothing
            for c in range(columns):
                inverse[last, c] -= first * inverse[j, c] + second * inverse[n, c]
        scale = unit / root[last, last]
        for c in range(columns):
            inverse[last, c] *= scale


@exact_kernel
def greatest_rows(table: Any, rated: Any, greatest: Any) -> None:
    """In each line the greatest of the table's rows of rated items, number by number.

    Measured on ML-100K, 943 lines of 85 of 1,682 rows: 18 ms. NumPy's maximum of each line's rows takes 49, since it
    gathers them first, and its maximum row by row 92.
    """
    for line in range(len(rated)):
        for place in range(rated.shape[1]):
            if rated[line, place] >= 0:
                row = np.uint64(rated[line, place])
                for column in range(np.uint64(table.shape[1])):
                    greatest[line, column] = max(greatest[line, column], table[row, column])


@exact_kernel
def nearest_places(table: Any, items: Any, rated: Any, places: Any) -> None:
    """For each item of a line the place of the rated one with the greatest number in the table."""
    for line in range(len(items)):
        for place in range(items.shape[1]):
            best = -2.0
            for other in range(rated.shape[1]):
                if items[line, place] >= 0 and rated[line, other] >= 0:
                    value = table[items[line, place], rated[line, other]]
                    if value > best:
                        best, places[line, place] = value, other


@exact_kernel
def geometric_medians(
    rows: Any, starts: Any, iterations: int, tolerance: float, smoothing: float, medians: Any
) -> None:
    """Steps of Weiszfeld's algorithm, Σ rows/distance over Σ 1/distance, of each line of medians until it rests.

    A line's rows are those from its start up to the next one's. Measured on ML-100K, 80,000 rows of 20 columns for
    1,650 lines: .07 s of processor time a round. NumPy's steps of all lines at once, which fill new arrays, took .4.
    """
    total = np.empty(rows.shape[1])
    for line in range(len(starts)):
        end = starts[line + 1] if line + 1 < len(starts) else len(rows)
        for _ in range(iterations):
            weights, total[:], moving = 0.0, 0.0, False
            for row in range(starts[line], end):
                squared = 0.0
                for column in range(len(total)):
                    squared += (rows[row, column] - medians[line, column]) ** 2
                weight = 1.0 / max(math.sqrt(squared), smoothing)
                weights += weight
                for column in range(len(total)):
                    total[column] += weight * rows[row, column]
            for column in range(len(total)):
                step = total[column] / weights - medians[line, column]
                moving |= abs(step) > 1e-12 + tolerance * abs(medians[line, column])
                medians[line, column] += step
            if not moving:
                break
