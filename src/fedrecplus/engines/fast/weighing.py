"""Weights of clients, as far as kernels compute them. ``parts/aggregation/wasserstein.py`` is the readable form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrecplus.engines.fast.compiling import inner

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
    rated_rows_only: bool = False
    """leave pseudo rows out of the sums, as denoising clients do"""


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


def target_of(left: Any, step: Any) -> Target:
    """Distances from Δ = left + moved to the step."""
    apart = left - step
    sizes = np.einsum("ic,ic->i", step, step, dtype=np.float64)
    return Target(apart, np.einsum("ic,ic->i", apart, apart, dtype=np.float64), sizes, float(sizes.sum()))


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
    return float(max(distance, how.bound * least, how.smallest) ** (-how.temperature))
