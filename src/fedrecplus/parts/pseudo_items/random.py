"""Unrated items, each as likely as the other. FedRec's choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import PseudoItems, SetSettings
from fedrecplus.parts.pseudo_items._sets import draw_unrated, set_key
from fedrecplus.protocol import Broadcast


class Random(PseudoItems[SetSettings]):
    """A uniform draw."""

    ATTACKER = OfPseudoItems(popularity=1.0, co_occurrence="rated")

    def select(self, count: int, device: Device, broadcast: Broadcast) -> NDArray[np.int64]:
        """Uniform without replacement. After: Lin, Pan, Ming 2020 (FedRec)."""
        items = len(broadcast.V)

        def item_of(numbers: NDArray[np.int64], draws: NDArray[np.float64]) -> NDArray[np.int64]:
            return (draws * items).astype(np.int64)

        return draw_unrated(count, device.items, items, set_key(device.secret, self.settings, broadcast.round), item_of)
