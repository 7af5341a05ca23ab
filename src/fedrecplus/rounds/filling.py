"""A client's pseudo items and their virtual ratings."""

from __future__ import annotations

import math

import numpy as np

from fedrecplus.config.settings import Config, PseudoItemSettings
from fedrecplus.device import Device, PseudoItems
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast
from fedrecplus.virtual_ratings._rounding import put_on_scale

_SMALLEST_CLASS = 16
_CLASSES_PER_DOUBLING = 3


def pseudo_count(rated: int, items: int, settings: PseudoItemSettings) -> int:
    """How many pseudo items a client with this many ratings has: ρ|I_u| or k, more to fill a size class.

    >>> pseudo_count(20, 1000, PseudoItemSettings(rule="random", ratio=1.0))
    20
    >>> pseudo_count(20, 1000, PseudoItemSettings(rule="random", ratio=1.0, pad=True))
    21
    """
    if settings.rule == "none" or rated == 0:
        return 0
    wanted = settings.count if settings.count > 0 else round(settings.ratio * rated)
    if settings.pad:
        wanted = size_class(rated + wanted) - rated
    return min(wanted, items - rated)


def size_class(rows: int) -> int:
    """The smallest size class that holds so many rows: 16, 21, 26, 32, 41, 51, 64, …

    Ours: the exact number of rows would tell how many items a client rated.
    """
    size, number = _SMALLEST_CLASS, 0
    while size < rows:
        number += 1
        size = math.ceil(_SMALLEST_CLASS * 2.0 ** (number / _CLASSES_PER_DOUBLING) - 1e-9)
    return size


def selects_by_features(settings: Config) -> bool:
    """Whether the choice of pseudo items looks at encoded items, so that a broadcast needs them."""
    return settings.pseudo_items.rule not in ("none", "random", "popular", "grouped")


def rates_by_features(settings: Config) -> bool:
    """Whether virtual ratings look at encoded items."""
    rule = settings.virtual_ratings.rule
    return settings.pseudo_items.rule != "none" and rule not in ("user-average", "hybrid", "predicted", "plausible")


def pseudo_items(broadcast: Broadcast, device: Device, settings: Config) -> PseudoItems:
    """The client's pseudo items of this round: kept or drawn, kept ratings or fresh ones.

    Paper: Algorithm 1, line 3
    Deviation: the set is kept from the client's first round unless told otherwise; items that came anew each round
    would be told from rated ones, which come every round.
    """
    kept = device.kept
    if kept is not None and not settings.virtual_ratings.refresh:
        return kept
    if kept is not None:
        items = kept.items
    else:
        count = pseudo_count(len(device.items), len(broadcast.V), settings.pseudo_items)
        items = part("pseudo_items", settings.pseudo_items.rule).select(count, device, broadcast, settings)
    if len(items) == 0:
        return PseudoItems(items, np.empty(0))
    ratings = part("virtual_ratings", settings.virtual_ratings.rule).fill(items, device, broadcast, settings)
    return PseudoItems(items, put_on_scale(ratings, items, device, settings, broadcast.round))
