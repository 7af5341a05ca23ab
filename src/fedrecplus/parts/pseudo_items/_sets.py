"""What all rules of pseudo items share: how many, for how long, and keyed draws of unrated items."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedrecplus.randomness import Key, subkey, uniform
from fedrecplus.settings import Annotated, number, text
from fedrecplus.settings import Settings as _Settings

Items = NDArray[np.int64]
_SMALLEST_CLASS = 16
_CLASSES_PER_DOUBLING = 3


class SetSettings(_Settings):
    """Options that every rule has which gives pseudo items."""

    ratio: Annotated[float, number(0, 1e6, "ρ, pseudo items per rated item")] = 1.0
    redraw: Annotated[bool, text("draw a new set each round (FedRec) instead of keeping the first one")] = False
    size_classes: Annotated[bool, text("pad uploads with pseudo items to a size class, to hide |I_u|")] = False


def in_wholes(rows: int, together: int) -> int:
    """The fewest rows from ``rows`` on that are a multiple of those that come together.

    >>> in_wholes(41, 2), in_wholes(41, 1)
    (42, 41)
    """
    return -(-rows // together) * together


def size_class(rows: int) -> int:
    """The smallest size class that holds so many rows: 16, 21, 26, 32, 41, 51, 64, …

    Ours: the exact number of rows would tell how many items a client rated.
    """
    size, number_of_class = _SMALLEST_CLASS, 0
    while size < rows:
        number_of_class += 1
        size = math.ceil(_SMALLEST_CLASS * 2.0 ** (number_of_class / _CLASSES_PER_DOUBLING) - 1e-9)
    return size


def draw_unrated(
    count: int, rated: Items, items: int, key: Key, item_of: Callable[[Items, NDArray[np.float64]], Items]
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


def set_key(secret: Key, settings: SetSettings, round_number: int) -> Key:
    """The key of the client's set: of the round where sets are drawn anew, the same for good where they are kept."""
    return subkey(secret, "pseudo-items", round_number if settings.redraw else 0)
