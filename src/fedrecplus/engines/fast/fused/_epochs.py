"""Local epochs of ``mf``, over rows that are not moved. ``parts/model/mf.py`` is the readable form."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays import section
from fedrecplus.engines.fast.fused._columns import move_user, products, pull_on_user, silence, whole


@section
def local_epochs(
    bias: Any,
    epochs: int,
    used: int,
    n: int,
    rate: Any,
    decay: Any,
    trained: Any,
    targets: Any,
    own: Any,
    pull: Any,
    dots: Any,
    table: Any,
    errors: Any,
    pushes: Any,
) -> Any:
    """K epochs of U steps and steps on the rows of V; returns the user bias. See ``parts/model/mf.py``.

    The rows are not moved here. A step takes V_j to (1 − η_L λ) V_j + e_j η_L U, so that after k of them

        V_j = (1 − η_L λ)^k V⁰_j + Σ_i (1 − η_L λ)^(k−1−i) e_ij push_i,   push_i = η_L U of epoch i.

    The table V⁰ is read twice an epoch and never written: ``errors`` and ``pushes`` keep e_i and push_i, of which
    ``_updates.py`` makes the rows' moves. The first ``used`` rows are those of the U step. An epoch is two half steps,
    on U and on the rows, so that what both do is compiled once.
    """
    keep, shrink = own.dtype.type(1) - rate * decay, own.dtype.type(1)
    start, last = np.int64(0), errors.shape[0] - 1
    e = errors[last]
    for half in range(2 * epochs):
        epoch, on_user = half // 2, half % 2 == 0
        if on_user and used == 0:
            continue
        padded = whole(used if on_user else n)
        if half == 0 or not on_user:  # otherwise they are known: U has not moved since
            products(own, table, start, padded, dots)
        _errors(targets, bias, own, dots, shrink, keep, errors, pushes, epoch, padded, last if on_user else epoch)
        if on_user:
            silence(e, used, padded)
            pull_bias = pull_on_user(e, table, start, padded, pull)
            _pull_of_moves(e, shrink, keep, errors, pushes, epoch, padded, pull)
            bias = move_user(own, bias, trained, pull, pull_bias, used, rate, decay)
        else:
            for c in range(len(own)):
                pushes[epoch, c] = rate * own[c]
            shrink *= keep
    return bias


@section
def _errors(
    targets: Any,
    bias: Any,
    own: Any,
    dots: Any,
    shrink: Any,
    keep: Any,
    errors: Any,
    pushes: Any,
    epoch: int,
    n: int,
    row: int,
) -> None:
    """e_j = r_j − b − U·V_j for n rows, of U·V⁰_j and the moves so far, as a row of errors. See ``mf.errors``."""
    out = errors[row]
    for j in range(np.uint64(n)):
        out[j] = targets[j] - bias - shrink * dots[j]
    fade = errors.dtype.type(1)
    for i in range(epoch - 1, -1, -1):
        lean = errors.dtype.type(0)
        for c in range(len(own)):
            lean += own[c] * pushes[i, c]
        lean *= fade
        for j in range(np.uint64(n)):
            out[j] -= lean * errors[i, j]
        fade *= keep


@section
def _pull_of_moves(e: Any, shrink: Any, keep: Any, errors: Any, pushes: Any, epoch: int, n: int, pull: Any) -> None:
    """Turn Σ_j e_j V⁰_j into Σ_j e_j V_j."""
    for c in range(len(pull)):
        pull[c] = shrink * pull[c]
    fade = errors.dtype.type(1)
    for i in range(epoch - 1, -1, -1):
        along = errors.dtype.type(0)
        for j in range(np.uint64(n)):
            along += e[j] * errors[i, j]
        along *= fade
        for c in range(len(pull)):
            pull[c] += along * pushes[i, c]
        fade *= keep
