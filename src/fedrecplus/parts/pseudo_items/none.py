"""No pseudo items: FedMF. The server sees which items a client rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Settings as _Settings


class Settings(_Settings):
    """No options."""


def select(count: int, device: Device, broadcast: Broadcast, settings: Settings) -> NDArray[np.int64]:
    """Nothing. Paper: Section "Problem Setup"."""
    return np.empty(0, dtype=np.int64)
