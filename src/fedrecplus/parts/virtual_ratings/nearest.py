"""The client's own rating of the most similar item: on the scale by itself, and the most private of the rules."""

from __future__ import annotations

from fedrecplus.arrays import own_values
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.similarity import nearest_rated
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast


class Nearest(VirtualRatings[FillSettings]):
    """The most similar item's."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfVirtualRatings(residual=-0.5, copied="nearest")

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """r'_j = r_i for the rated i with the greatest cosine; ties go to the lower item number.

        Paper: Section "Feature similarity for pseudo items"
        """
        return own_values(device.ratings, nearest_rated(broadcast.features, items, device.items))
