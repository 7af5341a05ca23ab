"""Kernel of ``parts/aggregation/wasserstein.py``."""

from __future__ import annotations

from fedrecplus.engines.fast.weighing import MEAN_OWN, OWN, TABLE, Weighing
from fedrecplus.parts.aggregation.wasserstein import SMALLEST, Settings

_ROWS = {"table": TABLE, "own": OWN, "mean-own": MEAN_OWN}


def handles(options: Settings) -> bool:
    """Distances to the last step, without covariances: anything else looks at single updates."""
    return options.global_step == "last" and options.covariance == "none"


def weighing(options: Settings) -> Weighing:
    """Weights by distance."""
    return Weighing(options.temperature > 0, _ROWS[options.rows], options.temperature, options.bound, SMALLEST)
