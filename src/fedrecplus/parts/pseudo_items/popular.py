"""Unrated items, drawn as real ratings are: in proportion to how often an item is rated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import PseudoItems, SetSettings
from fedrecplus.parts.pseudo_items._sets import draw_unrated, set_key
from fedrecplus.protocol import Broadcast

PATIENCE = 16
"""after this many draws per item, the rest is drawn uniformly: a client may have rated all that is popular"""


class Popular(PseudoItems[SetSettings]):
    """A draw by popularity."""

    ATTACKER = OfPseudoItems(popularity=0.1, co_occurrence="neither")

    def select(self, count: int, device: Device, broadcast: Broadcast) -> NDArray[np.int64]:
        """In proportion to popularity, without replacement.

        Ours: hides the set from an attacker who knows what is popular, as random items do not.
        """
        shares = cumulative(broadcast.public.popularity)
        items = len(broadcast.V)

        def item_of(numbers: NDArray[np.int64], draws: NDArray[np.float64]) -> NDArray[np.int64]:
            by_popularity = np.searchsorted(shares, draws, side="right")
            return np.where(numbers < PATIENCE * items, by_popularity, (draws * items).astype(np.int64))

        return draw_unrated(count, device.items, items, set_key(device.secret, self.settings, broadcast.round), item_of)


def cumulative(popularity: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of draws that fall on each item or one before it.

    Ours: every item counts as rated once more than it was, so that each can be drawn
    """
    total = np.cumsum(popularity + 1.0)
    return np.asarray(total / total[-1], dtype=np.float64)
