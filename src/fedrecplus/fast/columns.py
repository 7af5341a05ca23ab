"""A client's rows as columns: the arithmetic of a round, laid out so that vector units are full.

A client's copy of its rows of V is kept transposed, a column after the other, so that every loop runs over the rows
(tens to hundreds) instead of the factors (tens). Columns are taken four at a time, and tables are padded with zero
columns to a multiple of four: a zero column stays zero.

Row numbers are unsigned: a signed index might be negative, which Python counts from the end, and the check for that
keeps a loop out of the vector units. Nothing is sliced: a slice in a kernel costs more than a short loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.fast.compiling import kernel

LANES = 4


@kernel
def stride(rows: int) -> int:
    """Length of a column that holds so many rows: an odd multiple of 16, since columns at a distance of a power of
    two would fight for the same cache lines."""
    return int((rows + 31) // 32 * 32 + 16)


@kernel
def gather(V: Any, rows: Any, n: int, out: Any) -> None:
    """out[c, j] = V[rows[j], c]."""
    columns = V.shape[1]
    for j in range(n):
        row = rows[j]
        for c in range(columns):
            out[c, j] = V[row, c]


@kernel
def residuals(targets: Any, bias: Any, U: Any, table: Any, a: int, b: int, out: Any) -> None:
    """e_j = r_j − b − Σ_c U_c V_cj for the rows a to b. See ``gradients.errors``."""
    for j in range(np.uint64(a), np.uint64(b)):
        out[j] = targets[j] - bias
    for c in range(0, table.shape[0], 4):
        u0, u1, u2, u3 = U[c], U[c + 1], U[c + 2], U[c + 3]
        for j in range(np.uint64(a), np.uint64(b)):
            out[j] -= u0 * table[c, j] + u1 * table[c + 1, j] + u2 * table[c + 2, j] + u3 * table[c + 3, j]


@kernel
def pull_on_user(e: Any, table: Any, a: int, b: int, out: Any) -> Any:
    """out_c = Σ_j e_j V_cj over the rows a to b; returns Σ_j e_j, the pull on the bias."""
    zero = e.dtype.type(0)
    total = zero
    for j in range(np.uint64(a), np.uint64(b)):
        total += e[j]
    for c in range(0, table.shape[0], 4):
        s0, s1, s2, s3 = zero, zero, zero, zero
        for j in range(np.uint64(a), np.uint64(b)):
            s0 += e[j] * table[c, j]
            s1 += e[j] * table[c + 1, j]
            s2 += e[j] * table[c + 2, j]
            s3 += e[j] * table[c + 3, j]
        out[c], out[c + 1], out[c + 2], out[c + 3] = s0, s1, s2, s3
    return total


@kernel
def move_items(e: Any, U: Any, prior: Any, rate: Any, decay: Any, table: Any, a: int, b: int) -> None:
    """V_cj ← V_cj + η_L (e_j U_c − λ (V_cj − prior_c)) for the rows a to b. See ``gradients.item_step``."""
    keep = e.dtype.type(1) - rate * decay
    for c in range(table.shape[0]):
        push = rate * U[c]
        back = rate * decay * prior[c]
        for j in range(np.uint64(a), np.uint64(b)):
            table[c, j] = keep * table[c, j] + push * e[j] + back


@kernel
def move_user(
    U: Any, bias: Any, trained: Any, prior: Any, pull: Any, pull_bias: Any, rows: int, rate: Any, decay: Any
) -> Any:
    """U ← U − η_L (λ (U − prior) − pull / rows) in place, trained columns alone; returns the new user bias.

    The last numbers of ``trained`` and ``prior`` are the bias's. See ``gradients.user_step``.
    """
    share = U.dtype.type(1) / U.dtype.type(rows)
    last = len(trained) - 1
    for c in range(last):
        U[c] -= rate * trained[c] * (decay * (U[c] - prior[c]) - share * pull[c])
    return bias - rate * trained[last] * (decay * (bias - prior[last]) - share * pull_bias)
