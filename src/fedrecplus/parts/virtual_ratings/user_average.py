"""The client's mean rating, for every pseudo item. FedRec's user-averaging strategy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings._scale import FillSettings, Predict
from fedrecplus.protocol import Broadcast


class Settings(FillSettings):
    """Options of the rule."""


ATTACKER = OfVirtualRatings(residual=0.5)


def fill(
    items: NDArray[np.int64], device: Device, broadcast: Broadcast, predict: Predict, settings: Settings
) -> NDArray[np.float64]:
    """r' = mean of the client's ratings. After: Lin, Pan, Ming 2020 (FedRec), user averaging."""
    return np.full(len(items), device.ratings.mean())
