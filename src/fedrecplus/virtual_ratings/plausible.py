"""What the client might have given: the item's public average, and one of the client's own surprises."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import subkey, uniform

SHARE = 0.8
"""of a surprise that is passed on: a trained model explains part of the real ones, and none of these"""


def fill(items: NDArray[np.int64], device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.float64]:
    """r'_j = average_j + leaning + share (r_i − average_i − leaning) for a rated i drawn by the client's secret.

    Ours: virtual ratings then differ from what everybody expects as much, and as often, as the client's real ones do,
    so the size of a residual tells nothing, and V is pulled to the item's average rather than to another item's.
    """
    averages = broadcast.public.averages(len(broadcast.V))
    surprises = device.ratings - averages[device.items]
    key = subkey(device.secret, "plausible", broadcast.round if settings.virtual_ratings.refresh else 0)
    drawn = (uniform(key, items) * len(surprises)).astype(np.int64)
    leaning = surprises.mean()
    return np.asarray(averages[items] + leaning + SHARE * (surprises[drawn] - leaning))
