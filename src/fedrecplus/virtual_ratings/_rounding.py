"""Putting virtual ratings on the scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.device import Device
from fedrecplus.randomness import subkey, uniform


def put_on_scale(
    ratings: NDArray[np.float64], items: NDArray[np.int64], device: Device, settings: Config, round_number: int
) -> NDArray[np.float64]:
    """Clip to the scale's ends and, if asked, round to its levels.

    Stochastic rounding goes up with the probability that makes the mean right. Ours: a value off the scale tells the
    server that the item is not really rated.
    """
    clipped = np.clip(ratings, STANDARD_LOW, STANDARD_HIGH)
    if settings.virtual_ratings.rounding == "none":
        return clipped
    levels = (clipped - STANDARD_LOW) / device.step
    if settings.virtual_ratings.rounding == "stochastic":
        key = subkey(device.secret, "rounding", round_number if settings.virtual_ratings.refresh else 0)
        threshold = uniform(key, items)
    else:
        threshold = np.full(len(items), 0.5)
    floor = np.floor(levels)
    rounded = floor + (levels - floor > threshold)
    return np.asarray(np.clip(STANDARD_LOW + device.step * rounded, STANDARD_LOW, STANDARD_HIGH))
