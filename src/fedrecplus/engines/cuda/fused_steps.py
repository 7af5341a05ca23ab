"""Kernels of gradient steps on U and on a client's rows of V. ``parts/model/mf.py`` is the readable form."""

from __future__ import annotations

import triton.language as tl

from fedrecplus.engines.cuda.card import kernel
from fedrecplus.engines.cuda.ratings import rows_of, span_of


@kernel
def move_user(
    user: tl.tensor, learn: tl.tensor, pull: tl.tensor, rows: tl.tensor, rate: tl.tensor, decay: tl.tensor
) -> tl.tensor:
    """U ← U − η_L (λ U − pull / rows), trained columns alone. See ``mf.user_step``."""
    return user - rate * learn * (decay * user - pull / rows)


@kernel
def weight_at(
    distance: tl.tensor, own_step: tl.tensor, n: tl.tensor, target: tl.tuple, WHICH: tl.constexpr
) -> tl.tensor:
    """w = unit · D^(−τ), D bounded from below. See ``parts/aggregation/wasserstein.py``."""
    whole_step, temperature = tl.load(target.numbers), tl.load(target.numbers + 1)
    bound, smallest = tl.load(target.numbers + 2), tl.load(target.numbers + 3)
    distance = distance.to(tl.float64)
    least = own_step
    if WHICH == 0:
        distance += whole_step - own_step
        least = whole_step
    elif WHICH == 2:
        distance /= n
        least /= n
    floor = tl.maximum(bound * least, smallest)
    return tl.load(target.numbers + 4) * tl.exp(-temperature * tl.log(tl.maximum(distance, floor)))


@kernel
def train_clients(
    clients: tl.tensor,
    all_rows: tl.tuple,
    tables: tl.tuple,
    steps: tl.tuple,
    target: tl.tuple,
    sums: tl.tuple,
    epochs: tl.tensor,
    width: tl.tensor,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BIASES: tl.constexpr,
    SCALED: tl.constexpr,
    RATED_ONLY: tl.constexpr,
    SUM_RATED: tl.constexpr,
    DISTANCES: tl.constexpr,
    WHICH: tl.constexpr,
    KEEP: tl.constexpr,
    PSEUDO: tl.constexpr,
) -> None:
    """K epochs of one client, whose rows are in registers; its update is added to ``table``, or kept there apart.

    After a step on the rows, U·V_j is known without another look at them: (1 − η_L λ) U·V_j + η_L e_j ‖U‖². Where
    numbers stay in range (SCALED), the rows are kept divided by (1 − η_L λ)^k, so that a step is one multiplication and
    addition. Rows of V are read twice instead of being kept: registers are what limits how many clients are
    under way. Beyond a client's last row all is zero and stays so; with BIASES errors there are silenced.
    """
    at = tl.program_id(0).to(tl.int64)
    client = tl.load(clients + at)
    span = span_of(all_rows, client, PSEUDO)
    rated, n = span[1], span[3]
    mean, rate, decay = tl.load(steps.numbers), tl.load(steps.numbers + 1), tl.load(steps.numbers + 2)
    j = tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    row, rating = rows_of(j, all_rows, span, PSEUDO)
    present = j < n
    row = row.to(tl.int32)
    places = row[:, None] * COLUMNS + c[None, :]
    before = tl.load(tables.V + places, mask=present[:, None], other=0.0)
    user = tl.load(tables.U + client * (width + 1) + c, mask=c < width, other=0.0)
    bias = tl.load(tables.U + client * (width + 1) + width)
    learn = tl.load(steps.trained + c, mask=c < width, other=0.0)
    learn_bias = tl.load(steps.trained + width)
    used = n
    if RATED_ONLY:
        used = rated
    used_rows = used.to(before.dtype)
    targets = tl.where(present, rating - mean, 0.0)
    keep = 1.0 - rate * decay
    shrink = keep * 0.0 + 1.0
    rows = before
    dots = tl.sum(rows * user[None, :], axis=1)
    for _ in range(epochs):
        e = targets - dots
        if BIASES:
            e = tl.where(present, e - bias, 0.0)
        if RATED_ONLY:
            e = tl.where(j < used, e, 0.0)
        pull = shrink * tl.sum(e[:, None] * rows, axis=0)
        user = move_user(user, learn, pull, used_rows, rate, decay)
        dots = shrink * tl.sum(rows * user[None, :], axis=1)
        if BIASES:
            bias = move_user(bias, learn_bias, tl.sum(e, axis=0), used_rows, rate, decay)
            e = tl.where(present, targets - bias - dots, 0.0)
        else:
            e = targets - dots
        if SCALED:
            shrink *= keep
            rows += (rate / shrink * e)[:, None] * user[None, :]
        else:
            rows = keep * rows + (rate * e)[:, None] * user[None, :]
        dots = keep * dots + rate * tl.sum(user * user, axis=0) * e
    tl.store(tables.moved_U + client * (width + 1) + c, user, mask=c < width)
    tl.store(tables.moved_U + client * (width + 1) + width, bias)
    row, _ = rows_of(j, all_rows, span, PSEUDO)
    row = row.to(tl.int32)
    places = row[:, None] * COLUMNS + c[None, :]
    before = tl.load(tables.V + places, mask=present[:, None], other=0.0)
    if SCALED:
        rows = shrink * rows
    moved = rows - before
    if KEEP:
        tl.store(sums.table + (at * ROWS + j)[:, None] * COLUMNS + c[None, :], moved)
        tl.store(sums.numbers + at * ROWS + j, tl.where(present, row, -1).to(tl.int32))
    else:
        summed = n
        if SUM_RATED:
            summed = rated
        counts = j < summed
        inside = counts[:, None]
        if DISTANCES:
            gap = tl.where(inside, moved - tl.load(target.step + places, mask=inside, other=0.0), 0.0)
            distance = tl.sum(tl.sum(gap * gap, axis=1), axis=0)
            own_step = tl.sum(tl.load(target.step_sizes + row, mask=counts, other=0.0), axis=0)
            weight = weight_at(distance, own_step, summed, target, WHICH)
            tl.store(sums.weights + at, weight)
            moved = weight.to(moved.dtype) * moved
            tl.atomic_add(sums.per_item + row, weight + tl.zeros((ROWS,), dtype=tl.float64), mask=counts, sem="relaxed")
        tl.atomic_add(sums.table + places, moved, mask=inside, sem="relaxed")


@kernel
def train_long(
    clients: tl.tensor,
    all_rows: tl.tuple,
    tables: tl.tuple,
    steps: tl.tuple,
    table: tl.tensor,
    numbers: tl.tensor,
    epochs: tl.tensor,
    width: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    RATED_ONLY: tl.constexpr,
    PSEUDO: tl.constexpr,
) -> None:
    """K epochs of one client with too many rows for registers: ``table`` holds them, and at the end their moves."""
    at = tl.program_id(0).to(tl.int64)
    client = tl.load(clients + at)
    span = span_of(all_rows, client, PSEUDO)
    n = span[3]
    used = n
    if RATED_ONLY:
        used = span[1]
    mean, rate, decay = tl.load(steps.numbers), tl.load(steps.numbers + 1), tl.load(steps.numbers + 2)
    c = tl.arange(0, COLUMNS)
    block = tl.arange(0, BLOCK)
    user = tl.load(tables.U + client * (width + 1) + c, mask=c < width, other=0.0)
    bias = tl.load(tables.U + client * (width + 1) + width)
    learn = tl.load(steps.trained + c, mask=c < width, other=0.0)
    learn_bias = tl.load(steps.trained + width)
    used_rows = used.to(user.dtype)
    for epoch in range(epochs):
        pull = tl.zeros((COLUMNS,), dtype=user.dtype)
        pull_bias = tl.zeros((BLOCK,), dtype=user.dtype)
        for start in range(0, used, BLOCK):
            j = start + block
            row, rating = rows_of(j, all_rows, span, PSEUDO)
            inside = (j < n)[:, None]
            kept = table + (at * ROWS + j)[:, None] * COLUMNS + c[None, :]
            source = tables.V + row[:, None] * COLUMNS + c[None, :]
            if epoch > 0:
                source = kept
            rows = tl.load(source, mask=inside, other=0.0)
            e = tl.where(j < used, rating - mean - bias - tl.sum(rows * user[None, :], axis=1), 0.0)
            pull += tl.sum(e[:, None] * rows, axis=0)
            pull_bias += e
        user = move_user(user, learn, pull, used_rows, rate, decay)
        bias = move_user(bias, learn_bias, tl.sum(pull_bias, axis=0), used_rows, rate, decay)
        for start in range(0, n, BLOCK):
            j = start + block
            row, rating = rows_of(j, all_rows, span, PSEUDO)
            inside = (j < n)[:, None]
            kept = table + (at * ROWS + j)[:, None] * COLUMNS + c[None, :]
            source = tables.V + row[:, None] * COLUMNS + c[None, :]
            if epoch > 0:
                source = kept
            rows = tl.load(source, mask=inside, other=0.0)
            e = rating - mean - bias - tl.sum(rows * user[None, :], axis=1)
            tl.store(kept, rows - rate * (decay * rows - e[:, None] * user[None, :]), mask=inside)
        tl.debug_barrier()
    for start in range(0, ROWS, BLOCK):
        j = start + block
        row, _ = rows_of(j, all_rows, span, PSEUDO)
        inside = (j < n)[:, None]
        kept = table + (at * ROWS + j)[:, None] * COLUMNS + c[None, :]
        before = tl.load(tables.V + row[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
        tl.store(kept, tl.load(kept, mask=inside, other=0.0) - before)
        tl.store(numbers + at * ROWS + j, tl.where(j < n, row, -1).to(tl.int32))
    tl.store(tables.moved_U + client * (width + 1) + c, user, mask=c < width)
    tl.store(tables.moved_U + client * (width + 1) + width, bias)
