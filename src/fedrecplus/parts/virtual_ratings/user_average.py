"""The client's mean rating, for every pseudo item. FedRec's user-averaging strategy."""

from __future__ import annotations

from typing import Any

from fedrecplus.arrays import namespace
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast


class UserAverage(VirtualRatings[FillSettings]):
    """The mean."""

    ATTACKER = OfVirtualRatings(residual=0.5)

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """r' = mean of the client's ratings. After: Lin, Pan, Ming 2020 (FedRec), user averaging."""
        means: Array = namespace(items).broadcast_to(mean_of_rated(device.ratings, device)[..., None], items.shape)
        return means


def mean_of_rated(values: Array, device: Device) -> Any:
    """The mean of something of each client's rated items, 0 where there are none. Ours: a batch is padded."""
    xp = namespace(values)
    given = xp.astype(device.items >= 0, values.dtype)
    return xp.vecdot(values, given) / xp.clip(xp.sum(given, axis=-1), 1.0, None)
