"""Kernel of ``parts/aggregation/wasserstein.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.weighing import MEAN_OWN, OWN, TABLE, Weighing
from fedrecplus.parts.aggregation.wasserstein import Settings, public_scale

_ROWS = {"table": TABLE, "own": OWN, "mean-own": MEAN_OWN}


def handles(options: Settings) -> bool:
    """Distances to the last step, without covariances: anything else looks at single updates."""
    return options.global_step == "last" and options.covariance == "none"


def weighing(options: Settings, last_step: NDArray[Any]) -> Weighing:
    """Weights by distance to the last step."""
    unit, smallest = public_scale(last_step.astype(np.float64), options)
    by_distance = options.temperature > 0 and unit > 0.0
    return Weighing(by_distance, _ROWS[options.rows], options.temperature, options.bound, smallest, unit)
