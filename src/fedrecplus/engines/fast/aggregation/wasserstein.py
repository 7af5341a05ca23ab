"""Kernel of ``parts/aggregation/wasserstein.py``."""

from __future__ import annotations

from fedrecplus.engines.fast.weighing import MEAN_OWN, OWN, TABLE, Weighing
from fedrecplus.parts.aggregation.wasserstein import Settings, public_scale
from fedrecplus.protocol import Broadcast

_ROWS = {"table": TABLE, "own": OWN, "mean-own": MEAN_OWN}


def handles(options: Settings) -> bool:
    """Distances to the last step, without covariances: anything else looks at single updates."""
    return options.global_step == "last" and options.covariance == "none"


def weighing(options: Settings, message: Broadcast) -> Weighing:
    """Weights by distance to the last step."""
    unit, smallest = public_scale(message.last_step, options)
    return Weighing(options.temperature > 0, _ROWS[options.rows], options.temperature, options.bound, smallest, unit)
