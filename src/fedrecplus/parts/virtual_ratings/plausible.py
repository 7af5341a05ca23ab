"""What the client might have given: the item's public average, and one of the client's own deviations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings import FillSettings, Predict, VirtualRatings, kept_round
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import subkey, uniform
from fedrecplus.settings import Annotated, number


class Settings(FillSettings):
    """Options of the rule."""

    share: Annotated[
        float, number(0, 1, "of a deviation that is passed on: a model explains part of the real ones")
    ] = 0.8


class Plausible(VirtualRatings[Settings]):
    """Average and deviation."""

    NEEDS = frozenset({"averages"})
    ATTACKER = OfVirtualRatings(residual=0.0)

    def fill(
        self, items: NDArray[np.int64], device: Device, broadcast: Broadcast, predict: Predict
    ) -> NDArray[np.float64]:
        """r'_j = average_j + bias + share (r_i − average_i − bias) for a rated i drawn by the client's secret.

        Ours: virtual ratings then differ from what everybody expects as much, and as often, as the client's real ones
        do, so the size of a residual tells nothing, and V is pulled to the item's average, not to another item's.
        """
        averages = broadcast.public.averages()
        deviations = device.ratings - averages[device.items]
        key = subkey(device.secret, "plausible", kept_round(self.settings, broadcast.round))
        drawn = (uniform(key, items) * len(deviations)).astype(np.int64)
        bias = deviations.mean()
        return np.asarray(averages[items] + bias + self.settings.share * (deviations[drawn] - bias))
