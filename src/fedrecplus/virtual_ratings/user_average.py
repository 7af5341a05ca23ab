"""The client's mean rating, for every pseudo item. FedRec's user-averaging strategy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast


def fill(items: NDArray[np.int64], device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.float64]:
    """r' = mean of the client's ratings. After: Lin, Pan, Ming 2020 (FedRec), user averaging."""
    return np.full(len(items), device.ratings.mean())
