"""The rest of each rated item's public group: items as popular as it, which everybody uploads together or not at all.

All items are partitioned by popularity into groups of 1 + ρ, the same for everybody. A client uploads whole groups.
Which rows it uploads then depends only on the groups it has rated something in: within a group, nobody's set tells a
rated item from the others, however many sets one compares. What is left is the little popularity that items of a group
differ in.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config, PseudoItemSettings
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.pseudo_items._drawing import set_key
from fedrecplus.randomness import subkey, uniform

Items = NDArray[np.int64]
_known: dict[tuple[int, int], tuple[weakref.ref[PublicItems], Items]] = {}


def select(count: int, device: Device, broadcast: Broadcast, settings: Config) -> Items:
    """The unrated items of all groups that hold a rated one; then whole other groups, until there are ``count``.

    Other groups are wanted where a client rated several items of a group or fills a size class. Each lies next to a
    group that the client has touched, in order of popularity, so that these are as popular as the others.
    Ours: a set that is drawn for each client by itself is told by which items go together in everybody's sets.
    """
    group = groups(broadcast.public, group_size(settings.pseudo_items))
    touched = np.unique(group[device.items])
    unrated = np.ones(len(group), dtype=bool)
    unrated[device.items] = False
    chosen = np.flatnonzero(unrated & np.isin(group, touched))
    key = set_key(device, settings, broadcast.round)
    if len(chosen) > count:
        # ρ is less than a group needs, so some rated items go without company
        return np.sort(chosen[np.argsort(uniform(subkey(key, "few"), chosen), kind="stable")[:count]])
    more = _neighbouring(count - len(chosen), touched, group, key)
    return np.sort(np.concatenate([chosen, more]))


def group_size(settings: PseudoItemSettings) -> int:
    """1 + ρ, at least a pair.

    >>> group_size(PseudoItemSettings(rule="grouped", ratio=3.0))
    4

    Ours: a rated item together with the pseudo items that ρ gives it.
    """
    return 2 if settings.count > 0 else 1 + max(1, math.ceil(settings.ratio))


def groups(public: PublicItems, size: int) -> Items:
    """The group of each item: groups follow each other in order of popularity; the last takes what is left over.

    Ours: a public partition, so that all clients draw the same line around an item.
    """
    found = _known.get((id(public), size))
    if found is None or found[0]() is not public:
        most_popular_first = np.lexsort((np.arange(len(public.popularity)), -public.popularity))
        group = np.empty(len(most_popular_first), dtype=np.int64)
        last = max(len(group) // size - 1, 0)
        group[most_popular_first] = np.minimum(np.arange(len(group)) // size, last)
        found = (weakref.ref(public), group)
        _known[id(public), size] = found
    return found[1]


def _neighbouring(count: int, touched: Items, group: Items, key: int) -> Items:
    """Items of whole untouched groups, each the nearest that is left to a touched one drawn at random."""
    left = np.ones(int(group.max()) + 1, dtype=bool)
    left[touched] = False
    chosen: list[Items] = []
    found, draw = 0, 0
    while found < count and left.any():
        anchor, side = uniform(subkey(key, "groups"), np.array([2 * draw, 2 * draw + 1]))
        middle = int(touched[int(anchor * len(touched))])
        free = np.flatnonzero(left)
        # of two equally near, the side decides
        distance = np.abs(free - middle) + np.where((free < middle) == (side < 0.5), 0.0, 0.5)
        nearest = int(free[distance.argmin()])
        left[nearest] = False
        members = np.flatnonzero(group == nearest)[: count - found]
        chosen.append(members)
        found += len(members)
        draw += 1
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)
