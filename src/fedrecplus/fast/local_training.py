"""The kernel that trains clients, weighs their updates and adds them up. ``rounds/client.py`` is the readable form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrecplus.fast import columns
from fedrecplus.fast.compiling import kernel, mix

_gather = columns.gather
_stride = columns.stride
_whole = columns.whole
_silence = columns.silence
_to_rows = columns.to_rows
_residuals = columns.residuals
_pull = columns.pull_on_user
_move_user = columns.move_user
_move_items = columns.move_items

READINGS = {"table": 0, "own": 1, "mean-own": 2}


class Rows(NamedTuple):
    """Everybody's rated and pseudo rows."""

    indptr: Any
    items: Any
    codes: Any
    levels: Any
    pseudo_indptr: Any
    pseudo_items: Any
    virtual_ratings: Any
    mean: Any
    largest: int
    """rows of the client that has most"""


class Steps(NamedTuple):
    """How a client trains."""

    rate: Any
    decay_V: Any
    decay_U: Any
    trained: Any
    U_prior: Any
    V_prior: Any
    epochs: int
    batch_size: int
    rated_only: bool
    secrets_key: Any
    purpose: Any
    round_number: Any


class Weighing(NamedTuple):
    """How updates are weighed and added up."""

    distances: bool
    """weigh by distance; otherwise every client counts the same"""
    reading: int
    with_spread: bool
    target: Any
    spread: Any
    whole_target: float
    """Σ‖target‖² over the whole table"""
    whole_spread: float
    temperature: float
    bound: float
    smallest: float
    rated_rows_only: bool
    """leave pseudo rows out of the sums, as denoising clients do"""


@kernel
def train_clients(
    clients: Any, rows: Any, steps: Any, how: Any, V: Any, U: Any, keep_U: bool, total: Any, per_item: Any, spread: Any
) -> float:
    """Local training of some clients; their weighted updates are added to ``total``. Returns the sum of weights.

    ``keep_U = False`` is a dry run, to learn the round's mean.
    """
    # arrays are taken out of their tuples once: inside the loop each look-up would count references
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings, mean = (
        rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings, rows.mean,
    )  # fmt: skip
    rate, decay_V, decay_U, trained, U_prior = steps.rate, steps.decay_V, steps.decay_U, steps.trained, steps.U_prior
    epochs, batch_size, rated_only = steps.epochs, steps.batch_size, steps.rated_only
    target, last_spread = how.target, how.spread
    width, largest = V.shape[1], rows.largest
    padded = (width + 3) // 4 * 4
    V_prior = np.zeros(padded, V.dtype)
    V_prior[:width] = steps.V_prior
    own, pull = np.zeros(padded, V.dtype), np.zeros(padded, V.dtype)
    stride = _stride(largest)
    table, moved = np.zeros((padded, stride), V.dtype), np.zeros((_whole(largest), width), V.dtype)
    room = _whole(largest)
    targets, e, counted = np.zeros(room, V.dtype), np.zeros(room, V.dtype), np.zeros(room, V.dtype)
    numbers = np.empty(largest, np.int64)
    all_weights = 0.0
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first, pseudo = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        n = rated + pseudo
        for j in range(rated):
            numbers[j] = items[first + j]
            targets[j] = levels[codes[first + j]] - mean
        for j in range(pseudo):
            numbers[rated + j] = pseudo_items[pseudo_first + j]
            targets[rated + j] = virtual_ratings[pseudo_first + j] - mean
        if batch_size > 0:
            key = mix(mix(mix(steps.secrets_key, np.uint64(client)), steps.purpose), steps.round_number)
            _shuffle(key, rated, n, numbers, targets, counted)
        _gather(V, numbers, n, table)
        for c in range(width):
            own[c] = U[client, c]
        bias = _local_epochs(
            U[client, width], epochs, batch_size, rated_only, rate, decay_V, decay_U, trained, U_prior, V_prior,
            rated, n, targets, counted, own, pull, e, table,
        )  # fmt: skip
        if keep_U:
            for c in range(width):
                U[client, c] = own[c]
            U[client, width] = bias
        batch = min(batch_size, n) if batch_size > 0 else n
        shuffled = batch_size > 0
        if not how.distances and not how.with_spread:  # nothing to compare: one pass does
            all_weights += 1.0
            _add_moved(V, numbers, n, rated, shuffled, how.rated_rows_only, counted, table, total, per_item)
            continue
        _to_rows(table, n, width, moved)
        distance, own_target = _subtract(V, target, numbers, n, moved)
        weight = 1.0
        if how.distances:
            own_spread = 0.0
            if how.with_spread:
                gap, own_spread = _spread_gap(moved, last_spread, numbers, n, batch)
                distance += gap
            weight = _weight(distance, own_target, own_spread, n, how)
        all_weights += weight
        if how.with_spread:
            _add_spread(numbers, n, batch, moved, spread)
        _add(weight, numbers, n, rated, shuffled, how.rated_rows_only, counted, moved, total, per_item)
    return all_weights


@kernel
def _shuffle(key: Any, rated: int, n: int, numbers: Any, targets: Any, counted: Any) -> None:
    """Put the rows into the round's order: ascending keyed draws of their items."""
    draws = np.empty(n, np.uint64)
    for j in range(n):
        draws[j] = mix(key, np.uint64(numbers[j]))
        counted[j] = 1 if j < rated else 0
    order = np.argsort(draws)
    numbers[:n] = numbers[:n][order]
    targets[:n] = targets[:n][order]
    counted[:n] = counted[:n][order]


@kernel
def _local_epochs(
    bias: Any,
    epochs: int,
    batch_size: int,
    rated_only: bool,
    rate: Any,
    decay_V: Any,
    decay_U: Any,
    trained: Any,
    U_prior: Any,
    V_prior: Any,
    rated: int,
    n: int,
    targets: Any,
    counted: Any,
    own: Any,
    pull: Any,
    e: Any,
    table: Any,
) -> Any:
    """K epochs of U steps and steps on the rows of V, in place; returns the user bias. See ``rounds/client.py``."""
    size = batch_size if batch_size > 0 else n
    for _ in range(epochs):
        for a in range(0, n, size):
            b = min(a + size, n)
            # without batches the rated rows come first, so that a U step over them needs no mask, and rows are padded
            last = rated if rated_only and batch_size == 0 else b
            used = last - a
            b_padded, last_padded = (_whole(b), _whole(last)) if batch_size == 0 else (b, last)
            _residuals(targets, bias, own, table, a, last_padded, e)
            _silence(e, last, last_padded)
            if rated_only and batch_size > 0:
                used = 0
                for j in range(a, b):
                    e[j] *= counted[j]
                    used += int(counted[j])
            if used > 0:
                pull_bias = _pull(e, table, a, last_padded, pull)
                bias = _move_user(own, bias, trained, U_prior, pull, pull_bias, used, rate, decay_U)
            _residuals(targets, bias, own, table, a, b_padded, e)
            _move_items(e, own, V_prior, rate, decay_V, table, a, b_padded)
    return bias


@kernel
def _subtract(V: Any, target: Any, rows: Any, n: int, moved: Any) -> tuple[float, float]:
    """moved[j] −= V[rows[j]]: how the rows moved, Δ. Returns Σ (Δ − step)² and Σ step² over the client's rows."""
    distance, size = 0.0, 0.0
    for j in range(np.uint64(n)):
        row = np.uint64(rows[j])
        near, far = moved.dtype.type(0), moved.dtype.type(0)
        for c in range(np.uint64(moved.shape[1])):
            step = target[row, c]
            moved[j, c] -= V[row, c]
            near += (moved[j, c] - step) * (moved[j, c] - step)
            far += step * step
        distance += near
        size += far
    return distance, size


@kernel
def _weight(distance: float, own_target: float, own_spread: float, n: int, how: Any) -> float:
    """w = D^(−τ), D bounded from below. See ``aggregation/wasserstein.py``."""
    floor = own_target
    if how.reading == 0:
        distance += how.whole_target + how.whole_spread - own_target - own_spread
        floor = how.whole_target
    elif how.reading == 2:
        distance /= n
        floor /= n
    return float(max(distance, how.bound * floor, how.smallest) ** (-how.temperature))


@kernel
def _spread_gap(moved: Any, spread: Any, rows: Any, n: int, batch: int) -> tuple[float, float]:
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


@kernel
def _add_spread(rows: Any, n: int, batch: int, moved: Any, spread: Any) -> None:
    """Add the diagonal of the client's update covariance. See ``aggregation/_covariance.py``."""
    factor = spread.dtype.type((n - 1) / batch)
    for j in range(np.uint64(n)):
        row = np.uint64(rows[j])
        for c in range(np.uint64(moved.shape[1])):
            spread[row, c] += factor * moved[j, c] * moved[j, c]


@kernel
def _add(
    weight: float,
    rows: Any,
    n: int,
    rated: int,
    shuffled: bool,
    rated_only: bool,
    counted: Any,
    moved: Any,
    total: Any,
    per_item: Any,
) -> None:
    """Add the weighted update to the round's sums."""
    scaled = total.dtype.type(weight)
    for j in range(np.uint64(n)):
        if rated_only and (counted[j] == 0 if shuffled else j >= rated):
            continue
        row = np.uint64(rows[j])
        per_item[row] += weight
        for c in range(np.uint64(total.shape[1])):
            total[row, c] += scaled * moved[j, c]


@kernel
def _add_moved(
    V: Any,
    rows: Any,
    n: int,
    rated: int,
    shuffled: bool,
    rated_only: bool,
    counted: Any,
    table: Any,
    total: Any,
    per_item: Any,
) -> None:
    """What ``_to_rows``, ``_subtract`` and ``_add`` with weight one do, in one pass."""
    for j in range(np.uint64(n)):
        if rated_only and (counted[j] == 0 if shuffled else j >= rated):
            continue
        row = np.uint64(rows[j])
        per_item[row] += 1.0
        for c in range(np.uint64(total.shape[1])):
            total[row, c] += table[c, j] - V[row, c]
