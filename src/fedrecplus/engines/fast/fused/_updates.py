"""From errors and pushes to updates: their distance from the last step, and their sums. ``round.py`` says how."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays import section


@section
def row_updates(
    rows: Any,
    n: int,
    epochs: int,
    fades: Any,
    errors: Any,
    pushes: Any,
    at_once: bool,
    moved: Any,
    total: Any,
) -> None:
    """Σ_i fade_i e_ij push_i, along the rows of V: Δ_j less what decay alone does. See ``_epochs.py``.

    Kept in ``moved``, or added to the sums at once where nothing is weighed. Three epochs and two rows at a time: a
    loop over a row's few factors costs more than the arithmetic in it.
    """
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    zero, end = total.dtype.type(0), np.uint64(n)
    for j in range(np.uint64(0), end, two):
        k = j + one if j + one < end else j  # an odd one out: kept twice, or added once, and then as nothing
        twice = zero if at_once and k == j else total.dtype.type(1)
        row, other = np.uint64(rows[j]), np.uint64(rows[k])
        for i in range(np.uint64(0), np.uint64(epochs), three):
            fade0, fade1, fade2 = fades[i], fades[i + one], fades[i + two]
            e0, e1, e2 = fade0 * errors[i, j], fade1 * errors[i + one, j], fade2 * errors[i + two, j]
            f0, f1 = twice * fade0 * errors[i, k], twice * fade1 * errors[i + one, k]
            f2 = twice * fade2 * errors[i + two, k]
            if at_once:
                for c in range(np.uint64(total.shape[1])):
                    p0, p1, p2 = pushes[i, c], pushes[i + one, c], pushes[i + two, c]
                    total[row, c] += e0 * p0 + e1 * p1 + e2 * p2
                    total[other, c] += f0 * p0 + f1 * p1 + f2 * p2
            else:
                for c in range(np.uint64(total.shape[1])):
                    p0, p1, p2 = pushes[i, c], pushes[i + one, c], pushes[i + two, c]
                    before, after = (moved[j, c], moved[k, c]) if i > 0 else (zero, zero)
                    moved[j, c] = before + (e0 * p0 + e1 * p1 + e2 * p2)
                    moved[k, c] = after + (f0 * p0 + f1 * p1 + f2 * p2)


@section
def distance_of(apart: Any, rows: Any, n: int, moved: Any) -> float:
    """Σ (Δ − step)² over the client's rows, less Σ apart²: Δ = apart + step + moved, so Σ moved (2 apart + moved)."""
    distance = 0.0
    for j in range(np.uint64(n)):
        row, near = np.uint64(rows[j]), apart.dtype.type(0)
        for c in range(np.uint64(apart.shape[1])):
            near += moved[j, c] * (apart[row, c] + apart[row, c] + moved[j, c])
        distance += near
    return distance


@section
def add_weighted(weight: float, rows: Any, n: int, moved: Any, total: Any) -> None:
    """Add w·moved to the round's sums; ``left_by_decay`` is the rest of Δ_j."""
    scaled = total.dtype.type(weight)
    for j in range(np.uint64(n)):
        row = np.uint64(rows[j])
        for c in range(np.uint64(total.shape[1])):
            total[row, c] += scaled * moved[j, c]
