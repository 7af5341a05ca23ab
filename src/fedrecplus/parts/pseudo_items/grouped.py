"""The rest of each rated item's public group: items as popular and as alike, which everybody uploads together.

All items are partitioned into groups of 1 + ρ, the same for everybody. A client uploads whole groups. Which rows it
uploads then depends only on the groups it has rated something in: within a group, nobody's set tells a rated item from
the others, however many sets one compares. What is left is what items of a group differ in: a little popularity, and
what the catalogue says of them, since the rest of an upload shows which years and genres its client likes.
"""

from __future__ import annotations

import functools
import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import PseudoItems, SetSettings
from fedrecplus.parts.pseudo_items._sets import set_key
from fedrecplus.parts.similarity import DECIMALS, similarity, unit_rows
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import Key, keys, subkey, uniform

Items = NDArray[np.int64]


class Settings(SetSettings):
    """Options of the rule."""

    window: ClassVar[int] = 24
    """items next in popularity among which a group is gathered"""
    popularity_cost: ClassVar[float] = 2.0
    """cost of a popularity e times as large, beside similarity"""
    year_weight: ClassVar[float] = 9.0
    """weight of the same year beside the cosine of contents"""
    decoy_window: ClassVar[int] = 40
    """groups next in popularity among which a decoy group is chosen"""
    noise: ClassVar[float] = 0.5
    """weight of a secret draw beside similarity, in decoy groups"""


class Grouped(PseudoItems[Settings]):
    """Whole public groups."""

    ATTACKER = OfPseudoItems(popularity=0.3, co_occurrence="neither")

    def select(self, count: int, device: Device, broadcast: Broadcast) -> Items:
        """The unrated items of all groups that hold a rated one; then whole other groups, until there are ``count``.

        Other groups are wanted where a client rated several items of a group or fills a size class. Each is about as
        popular as a group that the client has touched, and much like it. The last group, which takes what is left over
        and so is larger, is none of them while there are others: a part of a group would be told for a decoy.
        Ours: a set that is drawn for each client by itself is told by which items go together in everybody's sets.
        """
        group = groups(broadcast.public, self.settings)
        touched = np.unique(group[device.items])
        unrated = np.ones(len(group), dtype=bool)
        unrated[device.items] = False
        chosen = np.flatnonzero(unrated & np.isin(group, touched))
        key = set_key(device.secret, self.settings, broadcast.round)
        if len(chosen) > count:
            # ρ is less than a group needs, so some rated items get no decoy
            return np.sort(chosen[np.argsort(keys(subkey(key, "few"), chosen), kind="stable")[:count]])
        more = _decoy_groups(count - len(chosen), touched, group, broadcast.public, key, self.settings)
        return np.sort(np.concatenate([chosen, more]))

    @property
    def whole_rows(self) -> int:
        """Those of a group."""
        return group_size(self.settings)

    def extra_rows(self, public: PublicItems) -> tuple[Items, int]:
        """The items of the last group, and how many rows it has more than others, which an upload that touches it has.

        Ours: without them the last of the other groups would have to be cut, and who cuts shows a decoy.
        """
        group = groups(public, self.settings)
        last = np.flatnonzero(group == group.max())
        return last, len(last) % group_size(self.settings)

    def public_groups(self, public: PublicItems) -> Items:
        """The partition."""
        return groups(public, self.settings)


def group_size(settings: Settings) -> int:
    """1 + ρ, at least a pair.

    >>> group_size(Settings(ratio=3.0))
    4

    Ours: a rated item together with the pseudo items that ρ gives it.
    """
    return 1 + max(1, math.ceil(settings.ratio))


@functools.lru_cache(maxsize=4)  # a round of the reference asks once for every client
def groups(public: PublicItems, settings: Settings) -> Items:
    """The group of each item: groups follow each other in order of popularity; the last takes what is left over.

    The most popular item that is left gathers those of the next ``window`` that are most like it and as popular.
    Ours: a public partition, so that all clients draw the same line around an item.
    """
    items, size, window = len(public.popularity), group_size(settings), settings.window
    level = np.log1p(public.popularity.astype(np.float64))
    coming = np.lexsort((np.arange(items), -public.popularity)).tolist()
    group = np.empty(items, dtype=np.int64)
    waiting, at, number_of_group = coming[: window + 1], min(window + 1, items), 0
    while len(waiting) + items - at >= 2 * size or number_of_group == 0:
        leader, others = waiting[0], np.array(waiting[1:], dtype=np.int64)
        alike = likeness(public, np.array([leader]), others, settings)[0]
        cost = settings.popularity_cost * (level[leader] - level[others]) - alike
        taken = {leader, *others[np.argsort(np.round(cost, DECIMALS), kind="stable")[: size - 1]].tolist()}
        group[list(taken)] = number_of_group
        waiting = [item for item in waiting if item not in taken]
        more = window + 1 - len(waiting)
        waiting, at, number_of_group = waiting + coming[at : at + more], min(at + more, items), number_of_group + 1
    rest = waiting + coming[at:]
    group[rest] = number_of_group if len(rest) >= size else number_of_group - 1
    return group


def members(group: Items) -> tuple[Items, Items]:
    """Items group by group, ascending within each, and the place where each group begins, with the end as a last.

    >>> order, starts = members(np.array([1, 0, 1]))
    >>> order.tolist(), starts.tolist()
    ([1, 0, 2], [0, 1, 3])

    Ours: the first of a group stands for it where groups are compared.
    """
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(int(group.max()) + 2))


def decoy_window(public: PublicItems, settings: Settings) -> int:
    """Among how many groups next in popularity a decoy is chosen. Ours: without a catalogue all are alike."""
    return settings.decoy_window if public.content.shape[1] or len(public.years) else 1


def likeness(public: PublicItems, first: Items, second: Items, settings: Settings) -> NDArray[np.float64]:
    """How alike items are by the catalogue: cosine of contents, and whether they are of the same year, softly.

    Without a catalogue all are alike. Ours: what an attacker can tell about a client's taste from its other rows.
    """
    alike = similarity(unit_rows(public.content[first]), unit_rows(public.content[second]))
    if len(public.years):
        one, other = public.years[first][:, None].astype(np.float64), public.years[second]
        alike += settings.year_weight * np.where((one > 0) & (other > 0), np.exp(-0.25 * (one - other) ** 2), 0.0)
    return np.round(alike, DECIMALS)


def _decoy_groups(count: int, touched: Items, group: Items, public: PublicItems, key: Key, settings: Settings) -> Items:
    """Items of whole untouched groups, each alike to a touched one drawn at random and about as popular."""
    order, starts = members(group)
    left = np.ones(len(starts) - 1, dtype=bool)
    left[touched] = False
    last = len(left) - 1
    held_back = bool(left[last]) and len(group) % group_size(settings) > 0
    left[last] &= not held_back
    chosen: list[Items] = []
    found, draw = 0, 0
    while found < count and (held_back or left.any()):
        if not left.any():
            left[last], held_back = True, False
        anchor, side = uniform(subkey(key, "groups"), np.array([2 * draw, 2 * draw + 1]))
        middle = int(touched[int(anchor * len(touched))])
        free = np.flatnonzero(left)
        # of two equally near, the side decides
        distance = np.abs(free - middle) + np.where((free < middle) == (side < 0.5), 0.0, 0.5)
        near = free[np.argsort(distance, kind="stable")[: decoy_window(public, settings)]]
        leaders = likeness(public, order[starts[[middle]]], order[starts[near]], settings)[0]
        best = int(near[(leaders + settings.noise * uniform(subkey(key, "alike", draw), near)).argmax()])
        left[best] = False
        chosen.append(order[starts[best] : starts[best + 1]][: count - found])
        found += len(chosen[-1])
        draw += 1
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)
