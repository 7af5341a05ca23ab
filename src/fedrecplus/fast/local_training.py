"""The kernel that trains clients, weighs their updates and adds them up. ``rounds/client.py`` is the readable form."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.fast import columns
from fedrecplus.fast.compiling import kernel, mix

_gather = columns.gather
_residuals = columns.residuals
_pull = columns.pull_on_user
_move_user = columns.move_user
_move_items = columns.move_items

ROWS = {"table": 0, "own": 1, "mean-own": 2}


@kernel
def train_clients(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    virtual: Any,
    V: Any,
    U: Any,
    mean: Any,
    numbers: Any,
    trained: Any,
    U_prior: Any,
    V_prior: Any,
    epochs: int,
    batch_size: int,
    rated_only: bool,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    largest: int,
    weighing: bool,
    rows_reading: int,
    with_spread: bool,
    target: Any,
    spread: Any,
    whole: float,
    whole_target: float,
    temperature: float,
    bound: float,
    rated_rows_only: bool,
    keep_U: bool,
    total: Any,
    per_item: Any,
    total_spread: Any,
) -> float:
    """Local training of some clients; their weighted updates are added to ``total``. Returns the sum of weights.

    ``numbers`` are η_L, λ of V and λ of U. ``rated_rows_only`` leaves pseudo rows out of the sums, as denoising clients
    do. ``keep_U = False`` is a dry run, to learn the round's mean.
    """
    width = V.shape[1]
    padded = (width + 3) // 4 * 4
    table = np.zeros((padded, largest), V.dtype)
    targets = np.empty(largest, V.dtype)
    e = np.empty(largest, V.dtype)
    counted = np.ones(largest, V.dtype)
    rows = np.empty(largest, np.int64)
    own = np.zeros(padded, V.dtype)
    pull = np.zeros(padded, V.dtype)
    prior = np.zeros(padded, V.dtype)
    prior[:width] = V_prior
    rate, decay_V, decay_U = numbers[0], numbers[1], numbers[2]
    all_weights = 0.0
    for client in clients:
        rated = indptr[client + 1] - indptr[client]
        pseudo = pseudo_indptr[client + 1] - pseudo_indptr[client]
        n = rated + pseudo
        for j in range(rated):
            rows[j] = items[indptr[client] + j]
            targets[j] = levels[codes[indptr[client] + j]] - mean
        for j in range(pseudo):
            rows[rated + j] = pseudo_items[pseudo_indptr[client] + j]
            targets[rated + j] = virtual[pseudo_indptr[client] + j] - mean
        real = rated
        if batch_size > 0:
            counted[:rated] = V.dtype.type(1)
            counted[rated:n] = V.dtype.type(0)
            key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
            _shuffle(key, rows, targets, counted, n)
        _gather(V, rows, n, table)
        own[:width] = U[client, :width]
        bias = U[client, width]
        size = batch_size if batch_size > 0 else n
        for _ in range(epochs):
            for a in range(0, n, size):
                b = min(a + size, n)
                # without batches the rated rows come first, so that a U step over them needs no mask
                last = real if rated_only and batch_size == 0 else b
                _residuals(targets, bias, own, table, a, last, e)
                used = last - a
                if rated_only and batch_size > 0:
                    used = 0
                    for j in range(a, b):
                        e[j] *= counted[j]
                        used += int(counted[j])
                if used > 0:
                    _pull(e, table, a, last, pull)
                    bias = _move_user(own, bias, trained, U_prior, pull, e[a:last].sum(), used, rate, decay_U)
                _residuals(targets, bias, own, table, a, b, e)
                _move_items(e, own, prior, rate, decay_V, table, a, b)
        weight = 1.0
        if weighing:
            weight = _weight(
                rows,
                n,
                table,
                V,
                target,
                spread,
                with_spread,
                size,
                rows_reading,
                whole,
                whole_target,
                temperature,
                bound,
            )
        all_weights += weight
        if with_spread:
            _add_spread(rows, n, table, V, min(size, n), total_spread)
        if batch_size == 0 and rated_rows_only:
            n = real
        scaled = V.dtype.type(weight)
        for j in range(n):
            if rated_rows_only and batch_size > 0 and counted[j] == 0:
                continue
            row = rows[j]
            per_item[row] += weight
            for c in range(width):
                total[row, c] += scaled * (table[c, j] - V[row, c])
        if keep_U:
            U[client, :width] = own[:width]
            U[client, width] = bias
    return all_weights


@kernel
def _shuffle(key: Any, rows: Any, targets: Any, counted: Any, n: int) -> None:
    """Put the rows into the round's order: ascending keyed draws of their items."""
    draws = np.empty(n, np.uint64)
    for j in range(n):
        draws[j] = mix(key, np.uint64(rows[j]))
    order = np.argsort(draws)
    rows[:n] = rows[:n][order]
    targets[:n] = targets[:n][order]
    counted[:n] = counted[:n][order]


@kernel
def _weight(
    rows: Any,
    n: int,
    table: Any,
    V: Any,
    target: Any,
    spread: Any,
    with_spread: bool,
    size: int,
    reading: int,
    whole: float,
    whole_target: float,
    temperature: float,
    bound: float,
) -> float:
    """w = D^(−τ), D bounded from below. See ``aggregation/wasserstein.py``.

    ``whole`` is Σ‖step‖² + Σ spread over the whole table, ``whole_target`` the first of the two.
    """
    distance, own_target, own_spread = 0.0, 0.0, 0.0
    factor = (n - 1) / min(size, n)
    for j in range(n):
        row = rows[j]
        for c in range(V.shape[1]):
            moved = float(table[c, j] - V[row, c])
            step = float(target[row, c])
            distance += (moved - step) ** 2
            own_target += step * step
            if with_spread:
                distance += (np.sqrt(factor) * abs(moved) - np.sqrt(float(spread[row, c]))) ** 2
                own_spread += float(spread[row, c])
    floor = own_target
    if reading == 0:
        distance += whole - own_target - own_spread
        floor = whole_target
    elif reading == 2:
        distance /= n
        floor /= n
    return float(max(distance, bound * floor, 1e-12) ** (-temperature))


@kernel
def _add_spread(rows: Any, n: int, table: Any, V: Any, batch: int, total_spread: Any) -> None:
    """Add the diagonal of the client's update covariance. See ``aggregation/_covariance.py``."""
    factor = V.dtype.type((n - 1) / batch)
    for j in range(n):
        row = rows[j]
        for c in range(V.shape[1]):
            moved = table[c, j] - V[row, c]
            total_spread[row, c] += factor * moved * moved
