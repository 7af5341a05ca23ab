"""No pseudo items: FedMF. The server sees which items a client rated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.pseudo_items import PseudoItems
from fedrecplus.protocol import Broadcast


class NoPseudoItems(PseudoItems[Any]):
    """Nothing is hidden."""

    HIDES = False

    def select(self, count: int, device: Device, broadcast: Broadcast) -> NDArray[np.int64]:
        """Nothing. Paper: Section "Problem Setup"."""
        return np.empty(0, dtype=np.int64)
