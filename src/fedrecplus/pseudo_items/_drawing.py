"""Drawing unrated items without replacement, from keyed draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.randomness import subkey, uniform

Items = NDArray[np.int64]


def draw_unrated(
    count: int, rated: Items, items: int, key: int, item_of: Callable[[Items, NDArray[np.float64]], Items]
) -> Items:
    """The first ``count`` different unrated items in a keyed sequence of draws, ascending.

    Draw n is ``item_of(n, uniform(key, n))``; rated items and repetitions are passed over. If no more than ``count``
    items are unrated, all of them are taken. Ours: O(count) draws, where ranking all items would take O(items).
    """
    unrated = items - len(rated)
    if count >= unrated:
        return np.setdiff1d(np.arange(items), rated)
    taken = np.zeros(items, dtype=bool)
    taken[rated] = True
    chosen: list[Items] = []
    found, drawn = 0, 0
    while found < count:
        numbers = np.arange(drawn, drawn + 2 * count + 16)
        drawn += len(numbers)
        candidates = item_of(numbers, uniform(key, numbers))
        candidates = candidates[~taken[candidates]]
        _, first = np.unique(candidates, return_index=True)
        fresh = candidates[np.sort(first)][: count - found]
        taken[fresh] = True
        chosen.append(fresh)
        found += len(fresh)
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.int64)


def set_key(device: Device, settings: Config, round_number: int) -> int:
    """The key of the client's set: of the round where sets are drawn anew, the same for good where they are kept."""
    return subkey(device.secret, "pseudo-items", round_number if settings.pseudo_items.redraw else 0)
