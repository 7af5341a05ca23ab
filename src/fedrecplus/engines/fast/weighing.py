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
    diagonal: bool = False
    """with diagonal covariances"""
    temperature: float = 0.0
    bound: float = 0.0
    smallest: float = 1e-12
    rated_rows_only: bool = False
    """leave pseudo rows out of the sums, as denoising clients do"""


class Target(NamedTuple):
    """What distances are measured to."""

    left: Any
    """the part of Δ that is the same for everybody: what regularisation alone does to V"""
    apart: Any
    """that, less the global step"""
    apart_sizes: Any
    """Σ apart² of each row"""
    step_sizes: Any
    """Σ step² of each row"""
    covariance: Any
    whole_step: float
    """Σ‖step‖² over the whole table"""
    whole_covariance: float


def target_of(left: Any, step: Any, covariance: Any) -> Target:
    """Distances from Δ = left + moved to the step."""
    apart = left - step
    sizes = np.einsum("ic,ic->i", step, step, dtype=np.float64)
    apart_sizes = np.einsum("ic,ic->i", apart, apart, dtype=np.float64)
    return Target(
        left, apart, apart_sizes, sizes, covariance, float(sizes.sum()), float(covariance.sum(dtype=np.float64))
    )


@inner
def weight_at(
    distance: float,
    own_step: float,
    own_covariance: float,
    n: int,
    how: Any,
    whole_step: float,
    whole_covariance: float,
) -> float:
    """w = D^(−τ), D bounded from below."""
    least = own_step
    if how.rows == 0:
        distance += whole_step + whole_covariance - own_step - own_covariance
        least = whole_step
    elif how.rows == 2:
        distance /= n
        least /= n
    return float(max(distance, how.bound * least, how.smallest) ** (-how.temperature))
