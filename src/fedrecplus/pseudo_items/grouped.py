"""The rest of each rated item's public group: items as popular and as alike, which everybody uploads together.

All items are partitioned into groups of 1 + ρ, the same for everybody. A client uploads whole groups. Which rows it
uploads then depends only on the groups it has rated something in: within a group, nobody's set tells a rated item from
the others, however many sets one compares. What is left is what items of a group differ in: a little popularity, and
what the catalogue says of them, since the rest of an upload shows which years and genres its client likes.
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
from fedrecplus.randomness import keys, subkey, uniform
from fedrecplus.similarity import DECIMALS, similarity, unit_rows

Items = NDArray[np.int64]
_known: dict[tuple[int, int], Items] = {}
"""groups of the catalogues that are in use, by identity and size"""

WINDOW = 24
"""items next in popularity among which a group is gathered"""
UNEQUAL = 2.0
"""cost of a popularity e times as large, beside a likeness of at most 1 in content and ``SAME_YEAR`` in years"""
SAME_YEAR = 9.0
"""weight of the year beside a cosine of contents: tastes differ more by year than by anything else in a catalogue"""
NEARBY = 40
"""free groups next in popularity among which a group is chosen that no rated item asks for"""
CHANCE = 0.5
"""weight of the secret draw beside the likeness of such a group: the most alike one could be looked up by anybody"""


def select(count: int, device: Device, broadcast: Broadcast, settings: Config) -> Items:
    """The unrated items of all groups that hold a rated one; then whole other groups, until there are ``count``.

    Other groups are wanted where a client rated several items of a group or fills a size class. Each is about as
    popular as a group that the client has touched, and much like it.
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
        return np.sort(chosen[np.argsort(keys(subkey(key, "few"), chosen), kind="stable")[:count]])
    more = _neighbouring(count - len(chosen), touched, group, broadcast.public, key)
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

    The most popular item that is left gathers those of the next ``WINDOW`` that are most like it and as popular.
    Ours: a public partition, so that all clients draw the same line around an item.
    """
    key = id(public), size
    if key not in _known:
        _known[key] = _partition(public, size)
        weakref.finalize(public, _known.pop, key, None)
    return _known[key]


def members(group: Items) -> tuple[Items, Items]:
    """Items group by group, ascending within each, and the place where each group begins, with the end as a last.

    >>> order, starts = members(np.array([1, 0, 1]))
    >>> order.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3])

    Ours: the first of a group stands for it where groups are compared.
    """
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(int(group.max()) + 2))


def nearby(public: PublicItems) -> int:
    """Among how many groups next in popularity one is chosen. Ours: without a catalogue all are alike."""
    return NEARBY if public.content.shape[1] or len(public.years) else 1


def likeness(public: PublicItems, first: Items, second: Items) -> NDArray[np.float64]:
    """How alike items are by the catalogue: cosine of contents, and whether they are of the same year, softly.

    Without a catalogue all are alike. Ours: what an attacker can tell about a client's taste from its other rows.
    """
    alike = similarity(unit_rows(public.content[first]), unit_rows(public.content[second]))
    if len(public.years):
        one, other = public.years[first][:, None].astype(np.float64), public.years[second]
        alike += SAME_YEAR * np.where((one > 0) & (other > 0), np.exp(-0.25 * (one - other) ** 2), 0.0)
    return np.round(alike, DECIMALS)


def _partition(public: PublicItems, size: int) -> Items:
    items = len(public.popularity)
    level = np.log1p(public.popularity.astype(np.float64))
    coming = np.lexsort((np.arange(items), -public.popularity)).tolist()
    group = np.empty(items, dtype=np.int64)
    waiting, at, number = coming[: WINDOW + 1], min(WINDOW + 1, items), 0
    while len(waiting) + items - at >= 2 * size or number == 0:
        leader, others = waiting[0], np.array(waiting[1:], dtype=np.int64)
        cost = UNEQUAL * (level[leader] - level[others]) - likeness(public, np.array([leader]), others)[0]
        taken = {leader, *others[np.argsort(np.round(cost, DECIMALS), kind="stable")[: size - 1]].tolist()}
        group[list(taken)] = number
        waiting = [item for item in waiting if item not in taken]
        more = WINDOW + 1 - len(waiting)
        waiting, at, number = waiting + coming[at : at + more], min(at + more, items), number + 1
    rest = waiting + coming[at:]
    group[rest] = number if len(rest) >= size else number - 1
    return group


def _neighbouring(count: int, touched: Items, group: Items, public: PublicItems, key: int) -> Items:
    """Items of whole untouched groups, each alike to a touched one drawn at random and about as popular."""
    order, starts = members(group)
    left = np.ones(len(starts) - 1, dtype=bool)
    left[touched] = False
    chosen: list[Items] = []
    found, draw = 0, 0
    while found < count and left.any():
        anchor, side = uniform(subkey(key, "groups"), np.array([2 * draw, 2 * draw + 1]))
        middle = int(touched[int(anchor * len(touched))])
        free = np.flatnonzero(left)
        # of two equally near, the side decides
        distance = np.abs(free - middle) + np.where((free < middle) == (side < 0.5), 0.0, 0.5)
        near = free[np.argsort(distance, kind="stable")[: nearby(public)]]
        leaders = likeness(public, order[starts[[middle]]], order[starts[near]])[0]
        best = int(near[(leaders + CHANCE * uniform(subkey(key, "alike", draw), near)).argmax()])
        left[best] = False
        chosen.append(order[starts[best] : starts[best + 1]][: count - found])
        found += len(chosen[-1])
        draw += 1
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)
