"""The kernel that trains clients, weighs their updates and adds them up. ``rounds/client.py`` is the readable form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrecplus.fast import columns, updates
from fedrecplus.fast.compiling import inner, kernel, mix, section
from fedrecplus.fast.sorting import sort_by

_gather = columns.gather
_stride = columns.stride
_whole = columns.whole
_silence = columns.silence
_products = columns.products
_pull = columns.pull_on_user
_move_user = columns.move_user
_steady = columns.steady
_moves = updates.moves
_distance = updates.distance
_weight = updates.weight
_spread_gap = updates.spread_gap
_add_spread = updates.add_spread
_add = updates.add

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
    contrast: Any
    uneven: Any
    """of each row of V: see ``gradients.unevenness``"""
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
    left: Any
    """what decay alone does to V: see ``updates.left_by_decay``"""
    apart: Any
    """that, less the global step"""
    apart_sizes: Any
    """Σ apart² of each row"""
    target_sizes: Any
    """Σ step² of each row"""
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
    """Local training of some clients; their weighted updates are added up. Returns the sum of weights.

    An update is what decay does to a row, which is the same for everybody (``left_by_decay``, times ``per_item``), and
    the rest of it, which is added to ``total``. ``keep_U = False`` is a dry run, to learn the round's mean.
    """
    # arrays are taken out of their tuples once: inside the loop each look-up would count references
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings, mean = (
        rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings, rows.mean,
    )  # fmt: skip
    rate, decay_V, decay_U, trained, U_prior = steps.rate, steps.decay_V, steps.decay_U, steps.trained, steps.U_prior
    uneven = steps.uneven
    epochs, batch_size, rated_only = steps.epochs, steps.batch_size, steps.rated_only
    left, apart, apart_sizes, target_sizes = how.left, how.apart, how.apart_sizes, how.target_sizes
    last_spread = how.spread
    width, largest = V.shape[1], rows.largest
    padded, room = (width + 3) // 4 * 4, _whole(largest)
    batches = (largest + batch_size - 1) // batch_size if batch_size > 0 else 1
    back = np.zeros(padded, V.dtype)
    for c in range(width):
        back[c] = rate * decay_V * steps.V_prior[c]
    own, pull = np.zeros(padded, V.dtype), np.zeros(padded, V.dtype)
    table, moved = np.zeros((padded, _stride(largest)), V.dtype), np.empty((largest, width), V.dtype)
    targets, counted = np.zeros(room, V.dtype), np.zeros(room, V.dtype)
    e, dots = np.zeros(room, V.dtype), np.zeros(room, V.dtype)
    slots = (epochs + 2) // 3 * 3  # those without an epoch stay zero
    errors, pushes = np.zeros((slots, room), V.dtype), np.zeros((slots * batches, padded), V.dtype)
    fades = np.zeros(slots, V.dtype)
    shrink = 1.0
    for i in range(epochs - 1, -1, -1):
        fades[i] = shrink
        shrink *= 1.0 - rate * decay_V
    numbers, draws = np.empty(largest, np.int64), np.empty(largest, np.uint64)
    all_weights, at_once = 0.0, not how.distances and not how.with_spread
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first, pseudo = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        n = rated + pseudo
        for j in range(rated):
            numbers[j] = items[first + j]
            targets[j] = levels[codes[first + j]] - mean
            counted[j] = 1
        for j in range(pseudo):
            numbers[rated + j] = pseudo_items[pseudo_first + j]
            targets[rated + j] = virtual_ratings[pseudo_first + j] - mean
            counted[rated + j] = 0
        contrast = V.dtype.type(_steady(steps.contrast, uneven, numbers, rated if rated_only else n, rate, decay_U))
        if batch_size > 0:
            key = mix(mix(mix(steps.secrets_key, np.uint64(client)), steps.purpose), steps.round_number)
            _shuffle(key, n, draws, numbers, targets, counted, e, dots)
        _gather(V, numbers, n, table)
        for c in range(width):
            own[c] = U[client, c]
        bias = _local_epochs(
            U[client, width], epochs, batch_size, rated_only, rate, decay_V, decay_U, contrast, trained, U_prior, back,
            rated, n, batches, targets, counted, own, pull, e, dots, table, errors, pushes,
        )  # fmt: skip
        if keep_U:
            for c in range(width):
                U[client, c] = own[c]
            U[client, width] = bias
        batch = max(min(batch_size, n) if batch_size > 0 else n, 1)
        if how.rated_rows_only:  # pseudo rows shall not count
            for i in range(epochs):
                for j in range(n):
                    errors[i, j] *= counted[j]
        _moves(numbers, n, batch, batches, epochs, fades, errors, pushes, at_once, moved, total)
        weight = 1.0
        if how.distances:
            distance = _distance(apart, numbers, n, moved)
            own_target, own_spread = 0.0, 0.0
            for j in range(n):
                distance += apart_sizes[numbers[j]]
                own_target += target_sizes[numbers[j]]
            if how.with_spread:
                gap, own_spread = _spread_gap(left, moved, last_spread, numbers, n, batch)
                distance += gap
            weight = _weight(distance, own_target, own_spread, n, how)
        all_weights += weight
        if how.with_spread:
            _add_spread(numbers, n, batch, left, moved, spread)
        for j in range(n):
            if not how.rated_rows_only or counted[j] > 0:
                per_item[numbers[j]] += weight
        if not at_once:
            _add(weight, numbers, n, moved, total)
    return all_weights


@section
def _shuffle(key: Any, n: int, draws: Any, numbers: Any, targets: Any, counted: Any, spare: Any, other: Any) -> None:
    """Put the rows into the round's order: ascending keyed draws of their items."""
    order = np.empty(n, np.int64)
    for j in range(n):
        draws[j] = mix(key, np.uint64(numbers[j]))
        order[j] = j
        spare[j], other[j] = targets[j], counted[j]
    sort_by(draws, order, n)
    rows = numbers[:n].copy()
    for j in range(n):
        at = order[j]
        numbers[j], targets[j], counted[j] = rows[at], spare[at], other[at]


@section
def _local_epochs(
    bias: Any,
    epochs: int,
    batch_size: int,
    rated_only: bool,
    rate: Any,
    decay_V: Any,
    decay_U: Any,
    contrast: Any,
    trained: Any,
    U_prior: Any,
    back: Any,
    rated: int,
    n: int,
    batches: int,
    targets: Any,
    counted: Any,
    own: Any,
    pull: Any,
    e: Any,
    dots: Any,
    table: Any,
    errors: Any,
    pushes: Any,
) -> Any:
    """K epochs of U steps and steps on the rows of V; returns the user bias. See ``rounds/client.py``.

    The rows are not moved here. A step takes V_j to (1 − η_L λ) V_j + e_j η_L U + back, so that after k of them

        V_j = (1 − η_L λ)^k V⁰_j + Σ_i (1 − η_L λ)^(k−1−i) e_ij push_i + grown back,   push_i = η_L U of epoch i.

    The table V⁰ is read twice an epoch and never written: ``errors`` and ``pushes`` keep e_i and push_i, of which
    ``fast/updates.py`` makes the rows' moves.
    """
    size = batch_size if batch_size > 0 else max(n, 1)
    keep = own.dtype.type(1) - rate * decay_V
    shrink, grown = own.dtype.type(1), own.dtype.type(0)
    for epoch in range(epochs):
        for batch in range((n + size - 1) // size):
            a, b = batch * size, min(batch * size + size, n)
            # without batches the rated rows come first, so that a U step over them needs no mask, and rows are padded
            last = rated if rated_only and batch_size == 0 else b
            used = last - a
            b_padded, last_padded = (_whole(b), _whole(last)) if batch_size == 0 else (b, last)
            if epoch == 0 or batch_size > 0:  # otherwise they are known: U has not moved since
                _products(own, table, a, last_padded, dots)
            _errors(
                targets, bias, own, back, dots, shrink, grown, keep, errors, pushes, epoch, batch, batches,
                a, last_padded, e,
            )  # fmt: skip
            _silence(e, last, last_padded)
            if rated_only and batch_size > 0:
                used = 0
                for j in range(a, b):
                    e[j] *= counted[j]
                    used += 1 if counted[j] > 0 else 0
            if used > 0:
                pull_bias = _pull(e, table, a, last_padded, pull)
                _pull_of_moves(
                    e, back, pull_bias, shrink, grown, keep, errors, pushes, epoch, batch, batches, a, last_padded, pull
                )
                bias = _move_user(own, bias, trained, U_prior, pull, pull_bias, used, rate, decay_U, contrast)
            _products(own, table, a, b_padded, dots)
            _errors(
                targets, bias, own, back, dots, shrink, grown, keep, errors, pushes, epoch, batch, batches,
                a, b_padded, errors[epoch],
            )  # fmt: skip
            for c in range(len(own)):
                pushes[epoch * batches + batch, c] = rate * own[c]
        grown = keep * grown + own.dtype.type(1)
        shrink *= keep
    return bias


@inner
def _errors(
    targets: Any,
    bias: Any,
    own: Any,
    back: Any,
    dots: Any,
    shrink: Any,
    grown: Any,
    keep: Any,
    errors: Any,
    pushes: Any,
    epoch: int,
    batch: int,
    batches: int,
    a: int,
    b: int,
    out: Any,
) -> None:
    """e_j = r_j − b − U·V_j for the rows a to b, of U·V⁰_j and the moves so far. See ``gradients.errors``."""
    drift = bias + grown * _dot(own, back)
    for j in range(np.uint64(a), np.uint64(b)):
        out[j] = targets[j] - drift - shrink * dots[j]
    fade = errors.dtype.type(1)
    for i in range(epoch - 1, -1, -1):
        lean = errors.dtype.type(0)
        for c in range(len(own)):
            lean += own[c] * pushes[i * batches + batch, c]
        lean *= fade
        for j in range(np.uint64(a), np.uint64(b)):
            out[j] -= lean * errors[i, j]
        fade *= keep


@section
def _pull_of_moves(
    e: Any,
    back: Any,
    pull_bias: Any,
    shrink: Any,
    grown: Any,
    keep: Any,
    errors: Any,
    pushes: Any,
    epoch: int,
    batch: int,
    batches: int,
    a: int,
    b: int,
    pull: Any,
) -> None:
    """Turn Σ_j e_j V⁰_j into Σ_j e_j V_j."""
    for c in range(len(pull)):
        pull[c] = shrink * pull[c] + grown * pull_bias * back[c]
    fade = errors.dtype.type(1)
    for i in range(epoch - 1, -1, -1):
        along = errors.dtype.type(0)
        for j in range(np.uint64(a), np.uint64(b)):
            along += e[j] * errors[i, j]
        along *= fade
        for c in range(len(pull)):
            pull[c] += along * pushes[i * batches + batch, c]
        fade *= keep


@section
def _dot(first: Any, second: Any) -> Any:
    total = first.dtype.type(0)
    for c in range(len(first)):
        total += first[c] * second[c]
    return total
