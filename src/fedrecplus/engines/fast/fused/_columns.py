"""A client's rows as columns: the arithmetic of a round, laid out so that vector units are full.

A client's copy of its rows of V is kept transposed, a column after the other, so that every loop runs over the rows
(tens to hundreds) instead of the factors (tens). Columns are taken four at a time, and tables are padded with zero
columns to a multiple of four: a zero column stays zero.

Rows are padded too, to a multiple of 32: what is left over after the last full vector would run one row at a time, and
clients' rows are few enough for that to count. The padding's errors are silenced, so that it pulls on nothing.

Row numbers are unsigned: a signed index might be negative, which Python counts from the end, and the check for that
keeps a loop out of the vector units. Nothing is sliced inside loops: a slice costs more than a short loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays import inner


@inner
def whole(rows: int) -> int:
    """So many rows with their padding."""
    return (rows + 31) // 32 * 32


@inner
def stride(rows: int) -> int:
    """Length of a column that holds so many rows: an odd multiple of 16, since columns at a distance of a power of
    two would fight for the same cache lines."""
    return (rows + 31) // 32 * 32 + 16


@inner
def gather(V: Any, rows: Any, n: int, out: Any) -> None:
    """out[c, j] = V[rows[j], c], four rows at a time; zero in the padding."""
    columns = np.uint64(V.shape[1])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    fours = np.uint64(n) // four * four
    for j in range(np.uint64(0), fours, four):
        row0, row1 = np.uint64(rows[j]), np.uint64(rows[j + one])
        row2, row3 = np.uint64(rows[j + two]), np.uint64(rows[j + three])
        for c in range(columns):
            out[c, j] = V[row0, c]
            out[c, j + one] = V[row1, c]
            out[c, j + two] = V[row2, c]
            out[c, j + three] = V[row3, c]
    for j in range(fours, np.uint64(n)):
        row0 = np.uint64(rows[j])
        for c in range(columns):
            out[c, j] = V[row0, c]
    for c in range(columns):
        for j in range(np.uint64(n), np.uint64(whole(n))):
            out[c, j] = 0


@inner
def silence(e: Any, a: int, b: int) -> None:
    """e_j = 0 for the rows a to b, which are padding or don't count."""
    for j in range(np.uint64(a), np.uint64(b)):
        e[j] = 0


@inner
def products(U: Any, table: Any, a: int, b: int, out: Any) -> None:
    """out_j = Σ_c U_c V_cj for the rows a to b."""
    for j in range(np.uint64(a), np.uint64(b)):
        out[j] = 0
    for c in range(0, table.shape[0], 4):
        u0, u1, u2, u3 = U[c], U[c + 1], U[c + 2], U[c + 3]
        for j in range(np.uint64(a), np.uint64(b)):
            out[j] += u0 * table[c, j] + u1 * table[c + 1, j] + u2 * table[c + 2, j] + u3 * table[c + 3, j]


@inner
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


@inner
def move_user(U: Any, bias: Any, trained: Any, pull: Any, pull_bias: Any, rows: int, rate: Any, decay: Any) -> Any:
    """U ← U − η_L (λ U − pull / rows) in place, trained columns alone; returns the new user bias.

    The last number of ``trained`` is the bias's. See ``mf.user_step``.
    """
    share = U.dtype.type(1) / U.dtype.type(rows)
    last = len(trained) - 1
    for c in range(last):
        U[c] -= rate * trained[c] * (decay * U[c] - share * pull[c])
    return bias - rate * trained[last] * (decay * bias - share * pull_bias)
