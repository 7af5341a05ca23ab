"""The client's mean rating, for every pseudo item. FedRec's user-averaging strategy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings import FillSettings, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast


class UserAverage(VirtualRatings[FillSettings]):
    """The mean."""

    ATTACKER = OfVirtualRatings(residual=0.5)

    def fill(
        self, items: NDArray[np.int64], device: Device, broadcast: Broadcast, predict: Predict
    ) -> NDArray[np.float64]:
        """r' = mean of the client's ratings. After: Lin, Pan, Ming 2020 (FedRec), user averaging."""
        return np.full(len(items), device.ratings.mean())
