"""No pseudo items: FedMF. The server sees which items a client rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast


def select(count: int, device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.int64]:
    """Nothing. Paper: Section "Problem Setup"."""
    return np.empty(0, dtype=np.int64)
