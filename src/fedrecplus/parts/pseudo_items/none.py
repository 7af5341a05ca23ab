"""No pseudo items: FedMF. The server sees which items a client rated."""

from __future__ import annotations

from typing import Any

from fedrecplus.device import Device
from fedrecplus.parts.pseudo_items import Count, Items, PseudoItems
from fedrecplus.protocol import Broadcast


class NoPseudoItems(PseudoItems[Any]):
    """Nothing is hidden."""

    HIDES = False

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """Nothing. Paper: Section "Problem Setup"."""
        return device.items[..., :0]
