"""Kernels of clients' weights, by the distance of their updates. ``parts/aggregation/wasserstein.py`` is readable."""

from __future__ import annotations

import triton.language as tl

from fedrecplus.engines.cuda.card import kernel


@kernel
def weight_at(
    distance: tl.tensor, own_step: tl.tensor, n: tl.tensor, numbers: tl.tensor, WHICH: tl.constexpr
) -> tl.tensor:
    """w = unit · D^(−τ), D bounded from below. See ``parts/aggregation/wasserstein.py``."""
    whole_step, temperature = tl.load(numbers), tl.load(numbers + 1)
    bound, smallest = tl.load(numbers + 2), tl.load(numbers + 3)
    distance = distance.to(tl.float64)
    least = own_step
    if WHICH == 0:
        distance += whole_step - own_step
        least = whole_step
    elif WHICH == 2:
        distance /= n
        least /= n
    floor = tl.maximum(bound * least, smallest)
    return tl.load(numbers + 4) * tl.exp(-temperature * tl.log(tl.maximum(distance, floor)))


@kernel
def weigh_clients(
    items: tl.tensor,
    moved: tl.tensor,
    summed: tl.tensor,
    step: tl.tensor,
    step_sizes: tl.tensor,
    numbers: tl.tensor,
    weights: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WHICH: tl.constexpr,
) -> None:
    """Each client's weight, by the distance of its rows from the last step."""
    at = tl.program_id(0).to(tl.int64)
    n = tl.load(summed + at)
    c = tl.arange(0, COLUMNS)
    distance = tl.zeros((BLOCK,), dtype=tl.float64)
    own_step = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, ROWS, BLOCK):
        j = start + tl.arange(0, BLOCK)
        present = (j < n) & (j < ROWS)
        row = tl.load(items + at * ROWS + j, mask=present, other=0).to(tl.int64)
        inside = present[:, None]
        move = tl.load(moved + (at * ROWS + j)[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
        gap = move - tl.load(step + row[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
        distance += tl.sum(gap * gap, axis=1).to(tl.float64)
        own_step += tl.load(step_sizes + row, mask=present, other=0.0)
    tl.store(weights + at, weight_at(tl.sum(distance, axis=0), tl.sum(own_step, axis=0), n, numbers, WHICH))
