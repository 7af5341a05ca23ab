"""A client's rows as columns: the arithmetic of a round, laid out so that vector units are full.

A client's copy of its rows of V is kept transposed, a column after the other, so that every loop runs over the rows
(tens to hundreds) instead of the factors (tens). Columns are taken four at a time, and tables are padded with zero
columns to a multiple of four: a zero column stays zero.
"""

from __future__ import annotations

from typing import Any

from fedrecplus.fast.compiling import kernel

LANES = 4


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
    """e_j = r_j − b − Σ_c U_c V_cj for the rows a to b."""
    for j in range(a, b):
        out[j] = targets[j] - bias
    for c in range(0, table.shape[0], 4):
        u0, u1, u2, u3 = U[c], U[c + 1], U[c + 2], U[c + 3]
        v0, v1, v2, v3 = table[c], table[c + 1], table[c + 2], table[c + 3]
        for j in range(a, b):
            out[j] -= u0 * v0[j] + u1 * v1[j] + u2 * v2[j] + u3 * v3[j]


@kernel
def pull_on_user(e: Any, table: Any, a: int, b: int, out: Any) -> None:
    """out_c = Σ_j e_j V_cj over the rows a to b."""
    zero = e.dtype.type(0)
    for c in range(0, table.shape[0], 4):
        v0, v1, v2, v3 = table[c], table[c + 1], table[c + 2], table[c + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for j in range(a, b):
            s0 += e[j] * v0[j]
            s1 += e[j] * v1[j]
            s2 += e[j] * v2[j]
            s3 += e[j] * v3[j]
        out[c], out[c + 1], out[c + 2], out[c + 3] = s0, s1, s2, s3


@kernel
def move_items(e: Any, U: Any, prior: Any, rate: Any, decay: Any, table: Any, a: int, b: int) -> None:
    """V_cj ← V_cj + η_L (e_j U_c − λ (V_cj − prior_c)) for the rows a to b."""
    keep = e.dtype.type(1) - rate * decay
    for c in range(table.shape[0]):
        column = table[c]
        push = rate * U[c]
        back = rate * decay * prior[c]
        for j in range(a, b):
            column[j] = keep * column[j] + push * e[j] + back


@kernel
def move_user(
    U: Any, bias: Any, trained: Any, prior: Any, pull: Any, pull_bias: Any, rows: int, rate: Any, decay: Any
) -> Any:
    """U ← U − η_L (λ (U − prior) − pull / rows) in place, trained columns alone; returns the new user bias.

    The last numbers of ``trained`` and ``prior`` are the bias's.
    """
    share = U.dtype.type(1) / U.dtype.type(rows)
    last = len(trained) - 1
    for c in range(last):
        U[c] -= rate * trained[c] * (decay * (U[c] - prior[c]) - share * pull[c])
    return bias - rate * trained[last] * (decay * (bias - prior[last]) - share * pull_bias)
