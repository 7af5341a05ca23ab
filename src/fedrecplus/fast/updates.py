"""From errors and pushes to updates: their distance from the last step, their weights, their sums.

``fast/local_training.py`` says how a row's move is made of them; ``aggregation/wasserstein.py`` is the readable form of
distances and weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.fast.compiling import inner


@inner
def moves(
    V: Any,
    rows: Any,
    n: int,
    batch_size: int,
    batches: int,
    epochs: int,
    lost: Any,
    gained: Any,
    back: Any,
    fades: Any,
    errors: Any,
    pushes: Any,
    moved: Any,
) -> None:
    """moved_j = V_j − V⁰_j after all epochs, along the rows of V. See ``_local_epochs``.

    Five epochs at a time: a loop over a row's few factors costs more than the arithmetic in it.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    five, more = np.uint64(5), np.uint64(batches)
    for j in range(np.uint64(n)):
        row = np.uint64(rows[j])
        for i in range(np.uint64(0), np.uint64(epochs), five):
            e0, e1 = fades[i] * errors[i, j], fades[i + one] * errors[i + one, j]
            e2, e3 = fades[i + two] * errors[i + two, j], fades[i + three] * errors[i + three, j]
            e4 = fades[i + four] * errors[i + four, j]
            push0 = i * more + j // np.uint64(batch_size)
            push1, push2 = push0 + more, push0 + two * more
            push3, push4 = push0 + three * more, push0 + four * more
            if i == 0:
                for c in range(np.uint64(V.shape[1])):
                    moved[j, c] = (
                        lost * V[row, c]
                        + gained * back[c]
                        + (
                            e0 * pushes[push0, c]
                            + e1 * pushes[push1, c]
                            + e2 * pushes[push2, c]
                            + e3 * pushes[push3, c]
                            + e4 * pushes[push4, c]
                        )
                    )
            else:
                for c in range(np.uint64(V.shape[1])):
                    moved[j, c] += (
                        e0 * pushes[push0, c]
                        + e1 * pushes[push1, c]
                        + e2 * pushes[push2, c]
                        + e3 * pushes[push3, c]
                        + e4 * pushes[push4, c]
                    )


@inner
def distance(
    apart: Any,
    rows: Any,
    n: int,
    batch_size: int,
    batches: int,
    epochs: int,
    fades: Any,
    errors: Any,
    pushes: Any,
    move: Any,
) -> float:
    """Σ (Δ − step)² over the client's rows, less Σ apart²: Δ = apart + step + move, so Σ move (2 apart + move)."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    five, more = np.uint64(5), np.uint64(batches)
    distance = 0.0
    for j in range(np.uint64(n)):
        row, near = np.uint64(rows[j]), apart.dtype.type(0)
        for i in range(np.uint64(0), np.uint64(epochs), five):
            e0, e1 = fades[i] * errors[i, j], fades[i + one] * errors[i + one, j]
            e2, e3 = fades[i + two] * errors[i + two, j], fades[i + three] * errors[i + three, j]
            e4 = fades[i + four] * errors[i + four, j]
            push0 = i * more + j // np.uint64(batch_size)
            push1, push2 = push0 + more, push0 + two * more
            push3, push4 = push0 + three * more, push0 + four * more
            if np.uint64(epochs) <= five:  # the move is complete, and needs not be kept
                for c in range(np.uint64(apart.shape[1])):
                    whole = (
                        e0 * pushes[push0, c]
                        + e1 * pushes[push1, c]
                        + e2 * pushes[push2, c]
                        + e3 * pushes[push3, c]
                        + e4 * pushes[push4, c]
                    )
                    near += whole * (apart[row, c] + apart[row, c] + whole)
            else:
                for c in range(np.uint64(apart.shape[1])):
                    before = move[c] if i > 0 else apart.dtype.type(0)
                    move[c] = before + (
                        e0 * pushes[push0, c]
                        + e1 * pushes[push1, c]
                        + e2 * pushes[push2, c]
                        + e3 * pushes[push3, c]
                        + e4 * pushes[push4, c]
                    )
        if epochs > 5:
            for c in range(np.uint64(apart.shape[1])):
                near += move[c] * (apart[row, c] + apart[row, c] + move[c])
        distance += near
    return distance


@inner
def weight(distance: float, own_target: float, own_spread: float, n: int, how: Any) -> float:
    """w = D^(−τ), D bounded from below. See ``aggregation/wasserstein.py``."""
    floor = own_target
    if how.reading == 0:
        distance += how.whole_target + how.whole_spread - own_target - own_spread
        floor = how.whole_target
    elif how.reading == 2:
        distance /= n
        floor /= n
    return float(max(distance, how.bound * floor, how.smallest) ** (-how.temperature))


@inner
def spread_gap(moved: Any, spread: Any, rows: Any, n: int, batch: int) -> tuple[float, float]:
    """tr(M²) with diagonal covariances, and Σ spread, over the client's rows."""
    factor = moved.dtype.type(np.sqrt((n - 1) / batch))
    distance, size = 0.0, 0.0
    for j in range(np.uint64(n)):
        row = np.uint64(rows[j])
        for c in range(np.uint64(moved.shape[1])):
            gap = factor * abs(moved[j, c]) - np.sqrt(spread[row, c])
            distance += gap * gap
            size += spread[row, c]
    return distance, size


@inner
def add_spread(rows: Any, n: int, batch: int, moved: Any, spread: Any) -> None:
    """Add the diagonal of the client's update covariance. See ``aggregation/_covariance.py``."""
    factor = spread.dtype.type((n - 1) / batch)
    for j in range(np.uint64(n)):
        row = np.uint64(rows[j])
        for c in range(np.uint64(moved.shape[1])):
            spread[row, c] += factor * moved[j, c] * moved[j, c]


@inner
def mute(errors: Any, epochs: int, counted: Any, n: int) -> None:
    """e_j = 0 for pseudo rows: they shall not count."""
    for i in range(epochs):
        for j in range(n):
            errors[i, j] *= counted[j]


@inner
def add(
    weight: float,
    rows: Any,
    n: int,
    batch_size: int,
    batches: int,
    epochs: int,
    fades: Any,
    errors: Any,
    pushes: Any,
    total: Any,
) -> None:
    """Add w Σ_i fade_i e_ij push_i to the round's sums, two rows at a time; ``left_by_decay`` is the rest of Δ_j."""
    scaled, nothing = total.dtype.type(weight), total.dtype.type(0)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    five, more = np.uint64(5), np.uint64(batches)
    for start in range(np.uint64(0), np.uint64(n), np.uint64(batch_size)):
        end = min(start + np.uint64(batch_size), np.uint64(n))
        for j in range(start, end, two):
            k = j + one if j + one < end else j  # an odd one out is added once, and then as nothing
            other = scaled if j + one < end else nothing
            row, other_row = np.uint64(rows[j]), np.uint64(rows[k])
            for i in range(np.uint64(0), np.uint64(epochs), five):
                fade0, fade1, fade2 = fades[i], fades[i + one], fades[i + two]
                fade3, fade4 = fades[i + three], fades[i + four]
                e0, e1 = scaled * fade0 * errors[i, j], scaled * fade1 * errors[i + one, j]
                e2, e3 = scaled * fade2 * errors[i + two, j], scaled * fade3 * errors[i + three, j]
                e4, f4 = scaled * fade4 * errors[i + four, j], other * fade4 * errors[i + four, k]
                f0, f1 = other * fade0 * errors[i, k], other * fade1 * errors[i + one, k]
                f2, f3 = other * fade2 * errors[i + two, k], other * fade3 * errors[i + three, k]
                push0 = i * more + start // np.uint64(batch_size)
                push1, push2 = push0 + more, push0 + two * more
                push3, push4 = push0 + three * more, push0 + four * more
                for c in range(np.uint64(total.shape[1])):
                    p0, p1, p2 = pushes[push0, c], pushes[push1, c], pushes[push2, c]
                    p3, p4 = pushes[push3, c], pushes[push4, c]
                    total[row, c] += e0 * p0 + e1 * p1 + e2 * p2 + e3 * p3 + e4 * p4
                    total[other_row, c] += f0 * p0 + f1 * p1 + f2 * p2 + f3 * p3 + f4 * p4


def left_by_decay(V: Any, steps: Any) -> Any:
    """What K steps of decay alone move each row of V by: (keep^K − 1) (V − prior). The rest of Δ is in ``add``."""
    keep = 1.0 - float(steps.rate) * float(steps.decay_V)
    return ((keep**steps.epochs - 1.0) * (V.astype(np.float64) - steps.V_prior)).astype(V.dtype)
