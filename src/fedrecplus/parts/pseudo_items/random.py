"""Unrated items, each as likely as the other. FedRec's choice."""

from __future__ import annotations

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import Count, Items, PseudoItems, SetSettings, draw_unrated, set_key
from fedrecplus.protocol import Broadcast


class Random(PseudoItems[SetSettings]):
    """A uniform draw."""

    ATTACKER = OfPseudoItems(popularity=1.0, co_occurrence="rated")

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """Uniform without replacement. After: Lin, Pan, Ming 2020 (FedRec)."""
        key = set_key(device.secret, self.settings, broadcast.round)
        return draw_unrated(count, device.items, len(broadcast.V), key)
