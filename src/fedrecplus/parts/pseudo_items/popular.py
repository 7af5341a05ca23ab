"""Unrated items, drawn as real ratings are: in proportion to how often an item is rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import Count, Items, PseudoItems, SetSettings, draw_unrated, set_key
from fedrecplus.protocol import Broadcast


class Popular(PseudoItems[SetSettings]):
    """A draw by popularity."""

    ATTACKER = OfPseudoItems(popularity=0.1, co_occurrence="neither")

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """In proportion to popularity, without replacement.

        Ours: hides the set from an attacker who knows what is popular, as random items do not.
        """
        key, shares = set_key(device.secret, self.settings, broadcast.round), cumulative(broadcast.public.popularity)
        return draw_unrated(count, device.items, len(broadcast.V), key, shares)


def cumulative(popularity: NDArray[np.int64]) -> Array:
    """Share of draws that fall on each item or one before it.

    Ours: every item counts as rated once more than it was, so that each can be drawn
    """
    total = np.cumsum(popularity + 1.0)
    return np.asarray(total / total[-1], dtype=np.float64)
