"""What the client might have given: the item's public average, and one of the client's own deviations."""

from __future__ import annotations

from typing import ClassVar

from fedrecplus.arrays import like, namespace, own_values, rows_of, subkey, uniform
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings, kept_round
from fedrecplus.parts.virtual_ratings.user_average import mean_of_rated
from fedrecplus.protocol import Broadcast


class Settings(FillSettings):
    """Options of the rule."""

    share: ClassVar[float] = 0.8
    """of a deviation that is passed on: a model explains part of the real ones"""


class Plausible(VirtualRatings[Settings]):
    """Average and deviation."""

    NEEDS = frozenset({"averages"})
    ATTACKER = OfVirtualRatings(residual=0.0)

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """r'_j = average_j + bias + share (r_i − average_i − bias) for a rated i drawn by the client's secret.

        Ours: virtual ratings then differ from what everybody expects as much, and as often, as the client's real ones
        do, so the size of a residual tells nothing, and V is pulled to the item's average, not to another item's.
        """
        xp, averages = namespace(items), like(broadcast.public.averages(), device.ratings)
        deviations = device.ratings - rows_of(averages, device.items)
        draws = uniform(subkey(device.secret, "plausible", kept_round(self.settings, broadcast.round)), items)
        rated = xp.sum(device.items >= 0, axis=-1)[..., None]
        drawn = own_values(deviations, xp.astype(draws * rated, xp.int64))
        bias = mean_of_rated(deviations, device)[..., None]
        ratings: Array = rows_of(averages, items) + bias + self.settings.share * (drawn - bias)
        return ratings
