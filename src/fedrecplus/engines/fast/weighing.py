"""Weights of clients, as far as kernels compute them. ``parts/aggregation/wasserstein.py`` is the readable form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrecplus.engines.fast.compiling import inner, mix, section, to_unit

TABLE, OWN, MEAN_OWN = 0, 1, 2
"""which rows a distance runs over"""


class Weighing(NamedTuple):
    """How updates are weighed."""

    distances: bool = False
    """weigh by distance; otherwise every client counts the same"""
    rows: int = MEAN_OWN
    temperature: float = 0.0
    bound: float = 0.0
    smallest: float = 1e-12
    unit: float = 1.0
    """factor on every weight, which everybody knows"""
    rated_rows_only: bool = False
    """leave pseudo rows out of the sums, as denoising clients do"""
    in_steps: bool = False
    """sum whole numbers: each update in steps of its row's scale, rounded, as ``parts/channel/_ring.py`` encodes it"""
    scales: Any = np.zeros(0)
    """steps per unit of w·Δ, of each row; 0: left out"""
    weight_scale: float = 1.0
    largest_move: float = 0.0
    largest_weight: float = 0.0
    statistic_scale: float = 1.0
    largest_statistic: float = 0.0
    marks: bool = False
    """pseudo rows are marks: they count in distances and not in sums"""
    by_chance: bool = False
    """round moves up or down by the draws of ``rounding_keys``, one per client"""
    rounding_keys: Any = np.zeros(0, np.uint64)
    left_out: Any = np.zeros(0, np.uint8)
    """of each client: 1 if it is not in the sums; kernels write 1 for those that are beyond the bounds"""


class Target(NamedTuple):
    """What distances are measured to."""

    apart: Any
    """the part of Δ that is the same for everybody, what regularisation alone does to V, less the global step"""
    apart_sizes: Any
    """Σ apart² of each row"""
    step_sizes: Any
    """Σ step² of each row"""
    whole_step: float
    """Σ step² over the whole table"""
    left: Any
    """the part of Δ that is the same for everybody"""


def target_of(left: Any, step: Any) -> Target:
    """Distances from Δ = left + moved to the step."""
    apart = left - step
    sizes = np.einsum("ic,ic->i", step, step, dtype=np.float64)
    return Target(apart, np.einsum("ic,ic->i", apart, apart, dtype=np.float64), sizes, float(sizes.sum()), left)


@inner
def weight_at(distance: float, own_step: float, n: int, how: Any, whole_step: float) -> float:
    """w = D^(−τ), D bounded from below."""
    least = own_step
    if how.rows == 0:
        distance += whole_step - own_step
        least = whole_step
    elif how.rows == 2:
        distance /= n
        least /= n
    return float(how.unit * max(distance, how.bound * least, how.smallest) ** (-how.temperature))


@section
def update_weight(rows: Any, n: int, moved: Any, how: Any, target: Any) -> float:
    """w of one update: by its distance to the global step, or 1. A section, since exact kernels must sum in order."""
    weight, distance, own_step = 1.0, 0.0, 0.0
    if how.distances:
        apart, step_sizes, width = target.apart, target.step_sizes, np.uint64(moved.shape[1])
        for j in range(n):
            row = np.uint64(rows[j])
            own_step += step_sizes[row]
            for c in range(width):
                gap = moved[j, c] + apart[row, c]
                distance += gap * gap
        weight = weight_at(distance, own_step, n, how, target.whole_step)
    return weight


@inner
def within_bounds(weight: float, rows: Any, n: int, moved: Any, left: Any, how: Any) -> bool:
    """Whether all numbers of an update have room in the ring; not a number has none. See ``_check`` there."""
    largest = 0.0
    for j in range(n):
        row = np.uint64(rows[j])
        for c in range(np.uint64(moved.shape[1])):
            value = abs(weight * (moved[j, c] + left[row, c]))
            if not value <= largest:
                largest = value
    return bool(largest <= how.largest_move and 0.0 <= weight <= how.largest_weight)


@inner
def add_steps(
    client: int, weight: float, rows: Any, n: int, moved: Any, left: Any, how: Any, total: Any, per_item: Any
) -> float:
    """Add an update in whole steps, and its weight to its rows; returns the weight in steps. See ``encode`` there."""
    steps, width = np.rint(weight * how.weight_scale), np.uint64(moved.shape[1])
    for j in range(n):
        row = np.uint64(rows[j])
        scale = how.scales[row]
        if scale > 0.0:
            per_item[row] += steps
            for c in range(width):
                move = weight * (moved[j, c] + left[row, c]) * scale
                if how.by_chance:
                    total[row, c] += np.floor(move + to_unit(mix(how.rounding_keys[client], row * width + c)))
                else:
                    total[row, c] += np.rint(move)
    return float(steps)


@section
def add_update(weight: float, rows: Any, n: int, moved: Any, total: Any, per_item: Any) -> None:
    """Add w·Δ to the sums of its rows, and w to their weights."""
    scaled, width = moved.dtype.type(weight), np.uint64(moved.shape[1])
    for j in range(n):
        row = np.uint64(rows[j])
        per_item[row] += weight
        for c in range(width):
            total[row, c] += scaled * moved[j, c]
