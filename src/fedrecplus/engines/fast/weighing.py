"""Weights of clients, and the weighted sums of their updates. Readable: ``parts/aggregation/wasserstein.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import exact_kernel, inner, mix, to_unit
from fedrecplus.parts.aggregation import ByDistance
from fedrecplus.protocol import Sums

_ROWS = {"table": 0, "own": 1, "mean-own": 2}
"""that a distance runs over"""


class Weighing(NamedTuple):
    """How updates are weighed."""

    is_known: bool = False
    """whether the numbers below say all of it: otherwise the rule's own file weighs"""
    distances: bool = False
    """weigh by distance; otherwise every client counts the same"""
    rows: int = 2
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

    @classmethod
    def of(cls, known: ByDistance | None) -> Weighing:
        """As a rule describes its weights in numbers, if it does."""
        if known is None:
            return cls()
        numbers = (known.temperature, known.bound, known.smallest, known.unit)
        return cls(True, known.temperature > 0, _ROWS[known.rows], *numbers)


@inner
def weight_at(distance: float, own_step: float, n: int, weighing: Any, whole_step: float) -> float:
    """w = unit · D^(−τ), D bounded from below."""
    least = own_step
    if weighing.rows == 0:
        distance += whole_step - own_step
        least = whole_step
    elif weighing.rows == 2:
        distance /= n
        least /= n
    return float(weighing.unit * max(distance, weighing.bound * least, weighing.smallest) ** (-weighing.temperature))


@exact_kernel
def add_rows(rows: Any, delta: Any, weights: Any, rated_rows_only: bool, total: Any, per_item: Any) -> float:
    """Add a batch's w·Δ to the sums of their rows, and w to the rows' weights; returns Σw. In the order of the code."""
    items, rated, width, all_weights = rows.items, rows.rated, np.uint64(delta.shape[2]), 0.0
    for k in range(np.uint64(len(weights))):
        weight, scaled = weights[k], delta.dtype.type(weights[k])
        for j in range(np.uint64(items.shape[1])):
            if items[k, j] >= 0 and (rated[k, j] or not rated_rows_only):
                row = np.uint64(items[k, j])
                per_item[row] += weight
                for c in range(width):
                    total[row, c] += scaled * delta[k, j, c]
        all_weights += weight
    return all_weights


@inner
def within(value: float, bound: float) -> float:
    """A number clipped to a bound; what is no number is zero."""
    return float(min(max(value, -bound), bound)) if value == value else 0.0


@exact_kernel
def add_in_steps(
    clients: Any, rows: Any, delta: Any, sizes: Any, weighing: Any, weights: Any, total: Any, per_item: Any
) -> float:
    """The same in whole steps, without clients that are left out; numbers beyond the bounds are clipped.

    ``sizes`` are the greatest numbers of clients' statistics. See ``encode`` in ``parts/channel/_ring.py``.
    """
    items, rated, scales = rows.items, rows.rated, weighing.scales
    left_out, keys, width, all_weights = weighing.left_out, weighing.rounding_keys, np.uint64(delta.shape[2]), 0.0
    for k in range(np.uint64(len(weights))):
        weight = weights[k]
        if left_out[clients[k]] != 0:
            weights[k] = 0.0
            continue
        sound = 0.0 <= weight <= weighing.largest_weight and weight * sizes[k] <= weighing.largest_statistic
        steps = np.rint(max(within(weight, weighing.largest_weight), 0.0) * weighing.weight_scale)
        for j in range(np.uint64(items.shape[1])):
            if items[k, j] >= 0 and (rated[k, j] or not weighing.marks):
                row = np.uint64(items[k, j])
                scale = scales[row]
                if scale > 0.0:
                    per_item[row] += steps
                for c in range(width):
                    value = weight * delta[k, j, c]
                    sound = sound and abs(value) <= weighing.largest_move
                    if scale > 0.0:
                        move = within(value, weighing.largest_move) * scale
                        chance = to_unit(mix(keys[clients[k]], row * width + c)) if weighing.by_chance else 0.0
                        total[row, c] += np.floor(move + chance) if weighing.by_chance else np.rint(move)
        if not sound:
            weighing.clipped[clients[k]] = 1
        all_weights += steps
    return all_weights


def add_chunks(parts: Sequence[tuple[Any, Any, float]], V: NDArray[Any], clients: int, in_steps: bool = False) -> Sums:
    """The sums of all chunks, in order."""
    total, per_item, overall = empty_sums(V, in_steps), np.zeros(len(V)), 0.0
    for part_total, part_per_item, part_overall in parts:
        total += part_total
        per_item += part_per_item
        overall += part_overall
    return Sums(total, per_item, overall, clients)


def empty_sums(V: NDArray[Any], in_steps: bool) -> NDArray[Any]:
    """A table to add updates to: steps are whole numbers that 32 bits can't hold, and 64 can."""
    return np.zeros(V.shape) if in_steps else np.zeros_like(V)
