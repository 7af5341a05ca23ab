"""Covariance of a client's update over the draw of its rows, and the trace term of the Wasserstein distance.

A client's gradient over n rows is a sum, and row i touches V_i alone. Drawn one row at a time, the estimate of the sum
is n·g_i in row i and zero elsewhere, with probability 1/n: its covariance is n·blockdiag(g_i g_iᵀ) − g gᵀ, whose
diagonal is (n − 1) g². A local step draws B of the n rows without replacement, which leaves (n − B)/((n − 1) B) of
that: nothing where B is all rows. With Δ = −Kη_L g the factors K²η_L² are in Δ already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.errors import UserError

LARGEST_FULL = 2_000
"""numbers in a table up to which a full covariance is offered: its square is stored"""


def check_full(table_size: int) -> None:
    """Refuse a full covariance of a table with so many numbers that its square doesn't fit."""
    if table_size > LARGEST_FULL:
        raise UserError(
            f"aggregation.covariance = 'full' needs a table of at most {LARGEST_FULL:,} numbers, this one has "
            f"{table_size:,}",
            "set aggregation.covariance=diagonal",
        )


def variance_left(rows: int, batch_size: int) -> float:
    """(n − B)/B: a batch's variance beside the square of what it estimates; none where the batch is all rows.

    >>> variance_left(10, 1), variance_left(10, 5), variance_left(10, 0), variance_left(10, 99)
    (9.0, 1.0, 0.0, 0.0)
    """
    batch = min(batch_size or rows, rows)
    return (rows - batch) / batch


def update_variance(delta: Array, batch_size: int) -> Array:
    """Diagonal of K²η_L²Σ_u/B. Ours: the paper has Σ_u in M of Eq. (18) and leaves open what it is."""
    variance: Array = variance_left(len(delta), batch_size) * delta**2
    return variance


def update_covariance(items: NDArray[np.int64], delta: Array, table_rows: int, batch_size: int) -> Array:
    """K²η_L²Σ_u/B in full, over the flattened table. Ours: as ``update_variance``, which is its diagonal."""
    from scipy.linalg import block_diag  # here: few need it, and it is 15 MB

    n, columns = delta.shape
    check_full(table_rows * columns)
    cells = (items[:, None] * columns + np.arange(columns)).ravel()
    flat = delta.ravel()
    scatter = block_diag(*(n * np.outer(row, row) for row in delta)) - np.outer(flat, flat)
    covariance = np.zeros((table_rows * columns, table_rows * columns))
    covariance[np.ix_(cells, cells)] = scatter * variance_left(n, batch_size) / max(n - 1, 1)
    return covariance


def full_trace(items: NDArray[np.int64], delta: Array, covariance: Array, batch_size: int) -> Array:
    """tr(M²), M = Σ_g^½ − Σ_u^½ with symmetric roots, by row of the table: the sum of it is the trace.

    Paper: Eq. (11)
    """
    columns = delta.shape[1]
    table_rows = len(covariance) // columns
    M = _root(covariance) - _root(update_covariance(items, delta, table_rows, batch_size))
    by_row: Array = (M**2).sum(axis=1).reshape(table_rows, columns).sum(axis=1)
    return by_row


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
