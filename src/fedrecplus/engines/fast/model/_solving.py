"""Small positive definite systems inside kernels: sums of outer products and Cholesky solves.

``parts/model/_public.py`` and ``parts/model/ials.py`` are the readable form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays.compiling import section


@section
def add_rows(rows: Any, targets: Any, gram: Any, moment: Any) -> None:
    """Add four rows to the upper triangle of XᵀX and to Xᵀy: a number of XᵀX is read and written once for all four."""
    row0, row1, row2, row3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
    for a in range(np.uint64(len(moment))):
        x0, x1, x2, x3 = rows[row0, a], rows[row1, a], rows[row2, a], rows[row3, a]
        moment[a] += targets[row0] * x0 + targets[row1] * x1 + targets[row2] * x2 + targets[row3] * x3
        for b in range(a, np.uint64(len(moment))):
            gram[a, b] += x0 * rows[row0, b] + x1 * rows[row1, b] + x2 * rows[row2, b] + x3 * rows[row3, b]


@section
def solve(gram: Any, moment: Any) -> None:
    """Solve in place, with the upper triangle of a positive definite matrix; loops run along its rows."""
    size, one = np.uint64(len(moment)), np.uint64(1)
    for k in range(size):
        pivot = np.sqrt(gram[k, k])
        for b in range(k, size):
            gram[k, b] /= pivot
        moment[k] /= pivot
        for a in range(k + one, size):
            factor = gram[k, a]
            moment[a] -= factor * moment[k]
            for b in range(a, size):
                gram[a, b] -= factor * gram[k, b]
    for back in range(size):
        last = size - one - back
        for c in range(last + one, size):
            moment[last] -= gram[last, c] * moment[c]
        moment[last] /= gram[last, last]
