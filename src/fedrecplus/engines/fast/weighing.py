"""Weights of clients, and the weighted sums of their updates. Readable: ``parts/aggregation/wasserstein.py``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrecplus.engines.fast.compiling import exact_kernel, inner, mix, section, to_unit

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
    """of each client: 1 if it is not in the sums"""
    clipped: Any = np.zeros(0, np.uint8)
    """of each client: kernels write 1 for those with numbers beyond the bounds"""


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
    """Distances from Δ = left + moved to the step; no distances where there is none."""
    if step is None:
        return Target(np.zeros((0, left.shape[1]), left.dtype), np.zeros(0), np.zeros(0), 0.0, left)
    apart = left - step
    sizes = np.einsum("ic,ic->i", step, step, dtype=np.float64)
    return Target(apart, np.einsum("ic,ic->i", apart, apart, dtype=np.float64), sizes, float(sizes.sum()), left)


@inner
def weight_at(distance: float, own_step: float, n: int, how: Any, whole_step: float) -> float:
    """w = unit · D^(−τ), D bounded from below."""
    least = own_step
    if how.rows == 0:
        distance += whole_step - own_step
        least = whole_step
    elif how.rows == 2:
        distance /= n
        least /= n
    return float(how.unit * max(distance, how.bound * least, how.smallest) ** (-how.temperature))


@exact_kernel
def add_weighed(block: Any, how: Any, target: Any, total: Any, per_item: Any, weights: Any) -> float:
    """Weigh a block's updates and add w·Δ to the sums of their rows, and w to the rows' weights; returns Σw.

    What is the same for everybody in Δ is left to the end. Sums are in the order of the code.
    """
    starts, rated, numbers, moved = block.starts, block.rated, block.numbers, block.moved
    width, all_weights = np.uint64(moved.shape[1]), 0.0
    for k in range(len(weights)):
        first = starts[k]
        end = first + rated[k] if how.rated_rows_only else starts[k + 1]
        weight = _update_weight(numbers, first, end, moved, how, target)
        scaled = moved.dtype.type(weight)
        for j in range(np.uint64(first), np.uint64(end)):
            row = np.uint64(numbers[j])
            per_item[row] += weight
            for c in range(width):
                total[row, c] += scaled * moved[j, c]
        weights[k] = weight
        all_weights += weight
    return all_weights


@inner
def within(value: float, bound: float) -> float:
    """A number clipped to a bound; what is no number is zero."""
    return float(min(max(value, -bound), bound)) if value == value else 0.0


@exact_kernel
def add_in_steps(block: Any, sizes: Any, how: Any, target: Any, total: Any, per_item: Any, weights: Any) -> float:
    """The same in whole steps, without clients that are left out; numbers beyond the bounds are clipped.

    ``sizes`` are the greatest numbers of what statistics are made of. See ``encode`` in ``parts/channel/_ring.py``.
    """
    clients, starts, rated, numbers, moved = block.clients, block.starts, block.rated, block.numbers, block.moved
    left, scales, left_out, keys = target.left, how.scales, how.left_out, how.rounding_keys
    width, all_weights = np.uint64(moved.shape[1]), 0.0
    for k in range(len(weights)):
        first, end = starts[k], starts[k + 1]
        weight = _update_weight(numbers, first, end, moved, how, target)
        if how.marks:
            end = first + rated[k]
        if left_out[clients[k]] != 0:
            continue
        sound = 0.0 <= weight <= how.largest_weight and weight * sizes[k] * sizes[k] <= how.largest_statistic
        steps = np.rint(max(within(weight, how.largest_weight), 0.0) * how.weight_scale)
        for j in range(np.uint64(first), np.uint64(end)):
            row = np.uint64(numbers[j])
            scale = scales[row]
            if scale > 0.0:
                per_item[row] += steps
            for c in range(width):
                value = weight * (moved[j, c] + left[row, c])
                sound = sound and abs(value) <= how.largest_move
                if scale > 0.0:
                    move = within(value, how.largest_move) * scale
                    chance = to_unit(mix(keys[clients[k]], row * width + c)) if how.by_chance else 0.0
                    total[row, c] += np.floor(move + chance) if how.by_chance else np.rint(move)
        if not sound:
            how.clipped[clients[k]] = 1
        weights[k] = weight
        all_weights += steps
    return all_weights


@section
def _update_weight(numbers: Any, first: int, end: int, moved: Any, how: Any, target: Any) -> float:
    """w of one update: by its distance to the global step, or 1. A section, since exact kernels must sum in order."""
    weight, distance, own_step = 1.0, 0.0, 0.0
    if how.distances:
        apart, step_sizes, width = target.apart, target.step_sizes, np.uint64(moved.shape[1])
        for j in range(np.uint64(first), np.uint64(end)):
            row = np.uint64(numbers[j])
            own_step += step_sizes[row]
            for c in range(width):
                gap = moved[j, c] + apart[row, c]
                distance += gap * gap
        weight = weight_at(distance, own_step, end - first, how, target.whole_step)
    return weight


@exact_kernel
def add_statistics(vectors: Any, weights: Any, scale: float, in_steps: bool, bound: float, statistic: Any) -> None:
    """Add the upper triangles of w x xᵀ, row by row; clipped and in whole steps where the sums are."""
    for k in range(len(weights)):
        place = 0
        if weights[k] != 0.0:
            for a in range(vectors.shape[1]):
                for b in range(a, vectors.shape[1]):
                    value = weights[k] * (vectors[k, a] * vectors[k, b])
                    statistic[place] += np.rint(within(value, bound) * scale) if in_steps else value
                    place += 1
