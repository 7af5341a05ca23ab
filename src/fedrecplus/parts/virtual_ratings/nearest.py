"""The client's own rating of the most similar item: on the scale by itself, and the most private of the rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.similarity import similarity
from fedrecplus.parts.virtual_ratings import FillSettings, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast


class Nearest(VirtualRatings[FillSettings]):
    """The most similar item's."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfVirtualRatings(residual=-0.5, copied="nearest")

    def fill(
        self, items: NDArray[np.int64], device: Device, broadcast: Broadcast, predict: Predict
    ) -> NDArray[np.float64]:
        """r'_j = r_i for the rated i with the greatest cosine; ties go to the lower item number.

        Paper: Section "Feature similarity for pseudo items"
        """
        likeness = similarity(broadcast.features[items], broadcast.features[device.items])
        return np.asarray(device.ratings[likeness.argmax(axis=1)])
