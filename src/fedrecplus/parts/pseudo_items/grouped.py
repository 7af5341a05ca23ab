"""The rest of each rated item's public group: items as popular and as alike, which everybody uploads together.

All items are partitioned into groups of 1 + ρ, the same for everybody. A client uploads whole groups. Which rows it
uploads then depends only on the groups it has rated something in: within a group, nobody's set tells a rated item from
the others, however many sets one compares. What is left is what items of a group differ in: a little popularity, and
what the catalogue says of them, since the rest of an upload shows which years and genres its client likes.
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import (
    NOTHING,
    Array,
    cumulative,
    greatest,
    like,
    marked,
    namespace,
    numbers,
    own_values,
    places_of,
    rows_of,
    subkey,
    uniform,
)
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import Count, Items, PseudoItems, SetSettings, candidates, kernels, set_key
from fedrecplus.parts.similarity import DECIMALS, similarity_matrix, unit_rows
from fedrecplus.protocol import Broadcast, PublicItems

Mask = NDArray[np.bool_]


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

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """The unrated items of all groups that hold a rated one; then whole other groups, until there are ``count``.

        Other groups are wanted where a client rated several items of a group or fills a size class. Each is about as
        popular as a group that the client has touched, and much like it. The last group, which takes what is left over
        and so is larger, is none of them while there are others: a part of a group would be told for a decoy.
        Ours: a set that is drawn for each client by itself is told by which items go together in everybody's sets.
        """
        partition = partition_of(broadcast.public, self.settings)
        group = numbers(partition.group, device.items)
        xp, unrated, wanted = candidates(count, device.items, len(group))
        key = set_key(device.secret, self.settings, broadcast.round)
        groups_of_rated = xp.where(device.items >= 0, rows_of(group, device.items), NOTHING)
        touched = marked(groups_of_rated, len(partition.years))
        chosen = unrated & touched[..., group]
        many = xp.sum(chosen, axis=-1) > wanted
        if bool(xp.any(many)):  # ρ is less than a group needs, so some rated items get no decoy
            draws = uniform(subkey(key, "few"), numbers(np.arange(len(group)), group))
            few = greatest(xp.where(chosen, -draws, -2.0), wanted)
            chosen = xp.where(many[..., None], few, chosen)
        chosen = add_decoys(chosen, touched, wanted, key, partition, self.settings)
        return places_of(chosen, int(xp.max(wanted)))

    @property
    def whole_rows(self) -> int:
        """Those of a group."""
        return group_size(self.settings)

    def extra_rows(self, public: PublicItems) -> tuple[Items, int]:
        """The items of the last group, and how many rows it has more than others, which an upload that touches it has.

        Ours: without them the last of the other groups would have to be cut, and who cuts shows a decoy.
        """
        group = partition_of(public, self.settings).group
        last = np.flatnonzero(group == group.max())
        return last, len(last) % group_size(self.settings)

    def public_groups(self, public: PublicItems) -> Items:
        """The partition."""
        return partition_of(public, self.settings).group


def group_size(settings: Settings) -> int:
    """1 + ρ, at least a pair.

    >>> group_size(Settings(ratio=3.0))
    4

    Ours: a rated item together with the pseudo items that ρ gives it.
    """
    return 1 + max(1, math.ceil(settings.ratio))


class Partition(NamedTuple):
    """All items in groups, which follow each other in order of popularity."""

    group: Items
    """of each item"""
    order: Items
    """items group by group, ascending within each"""
    starts: Items
    """where each group begins in that order, with the end as a last"""
    content: Array
    """unit rows of each group's first item in the catalogue: it stands for the group where groups are compared"""
    years: Items
    """of these items; 0 where not known, and where there is no catalogue"""
    window: int
    """among how many groups next in popularity a decoy is chosen: without a catalogue all are alike"""
    last_is_larger: bool


@functools.lru_cache(maxsize=4)  # a round of the reference asks once for every client
def partition_of(public: PublicItems, settings: Settings) -> Partition:
    """The groups and what is compared of them. Ours: see ``groups``."""
    group = groups(public, settings)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(int(group.max()) + 2))
    catalogue, leaders = public.content.shape[1] or len(public.years), order[starts[:-1]]
    years = public.years if len(public.years) else np.zeros(len(group), np.int64)
    window, larger = settings.decoy_window if catalogue else 1, len(group) % group_size(settings) > 0
    return Partition(group, order, starts, unit_rows(public.content[leaders]), years[leaders], window, larger)


def groups(public: PublicItems, settings: Settings) -> Items:
    """The group of each item: groups follow each other in order of popularity; the last takes what is left over.

    The most popular item that is left gathers those of the next ``window`` that are most like it and as popular.
    Ours: a public partition, so that all clients draw the same line around an item.
    """
    items, size, window = len(public.popularity), group_size(settings), settings.window
    level, content = np.log1p(public.popularity.astype(np.float64)), unit_rows(public.content)
    years = public.years if len(public.years) else np.zeros(items, np.int64)
    coming = np.lexsort((np.arange(items), -public.popularity)).tolist()
    group = np.empty(items, dtype=np.int64)
    waiting, at, number_of_group = coming[: window + 1], min(window + 1, items), 0
    while len(waiting) + items - at >= 2 * size or number_of_group == 0:
        leader, others = waiting[0], np.array(waiting[1:], dtype=np.int64)
        alike = likeness(content[[leader]], years[[leader]], content[others], years[others], settings)
        cost = settings.popularity_cost * (level[leader] - level[others]) - alike
        taken = {leader, *others[np.argsort(np.round(cost, DECIMALS), kind="stable")[: size - 1]].tolist()}
        group[list(taken)] = number_of_group
        waiting = [item for item in waiting if item not in taken]
        more = window + 1 - len(waiting)
        waiting, at, number_of_group = waiting + coming[at : at + more], min(at + more, items), number_of_group + 1
    rest = waiting + coming[at:]
    group[rest] = number_of_group if len(rest) >= size else number_of_group - 1
    return group


def likeness(content: Any, year: Any, others: Any, years: Any, settings: Settings) -> Any:
    """How alike an item (…, 1) and others (…, n) are by the catalogue: cosine of contents, and the same year, softly.

    Without a catalogue all are alike. Ours: what an attacker can tell about a client's taste from its other rows.
    """
    xp = namespace(content)
    apart = xp.astype(year - years, xp.float64)
    same = xp.where((year > 0) & (years > 0), xp.exp(-0.25 * apart**2), 0.0)
    alike = similarity_matrix(content, others)[..., 0, :] + settings.year_weight * same
    return xp.round(alike * 10.0**DECIMALS) / 10.0**DECIMALS


def add_decoys(chosen: Mask, touched: Mask, wanted: Items, key: Any, partition: Partition, settings: Settings) -> Mask:
    """Items of whole untouched groups besides, each alike to a touched one drawn at random and about as popular.

    Ours: see ``Grouped.select``.
    """
    xp = namespace(chosen)
    if isinstance(chosen, np.ndarray) and chosen.ndim > 1:
        kernels().add_decoys(touched, wanted, key, partition, settings.year_weight, settings.noise, chosen)
        return chosen
    group, last = numbers(partition.group, chosen), touched.shape[-1] - 1
    is_last = numbers(np.arange(last + 1), chosen) == last
    held_back = ~touched[..., last] & partition.last_is_larger
    left, step = ~touched & ~(is_last & held_back[..., None]), 0
    while bool(xp.any(missing := wanted - xp.sum(chosen, axis=-1))):
        released = held_back & ~xp.any(left, axis=-1)
        left, held_back = left | (is_last & released[..., None]), held_back & ~released
        decoy = decoy_of(left, touched, key, step, partition, settings)
        of_decoy = (group == decoy) & (missing > 0)[..., None]
        chosen = chosen | (of_decoy & (cumulative(of_decoy) <= missing[..., None]))
        left, step = left & ~marked(decoy, last + 1), step + 1
    return chosen


def decoy_of(left: Mask, touched: Mask, key: Any, step: int, partition: Partition, settings: Settings) -> Items:
    """The group (…, 1) most alike to one touched, by the catalogue and a secret draw, of those nearest in popularity.

    Ours: of two equally near, a draw decides.
    """
    xp, ranks = namespace(left), numbers(np.arange(left.shape[-1]), left)
    draws = uniform(subkey(key, "groups"), numbers([2 * step, 2 * step + 1], left))
    anchor, below_first = draws[..., :1], draws[..., 1:] < 0.5
    nth = xp.astype(anchor * xp.sum(touched, axis=-1)[..., None], xp.int64)
    middle = xp.argmax(xp.astype(cumulative(touched) > nth, xp.int64), axis=-1)[..., None]
    distance = xp.abs(ranks - middle) + xp.where((ranks < middle) == below_first, 0.0, 0.5)
    near = left & greatest(xp.where(left, -distance, -np.inf), partition.window)
    window = places_of(near, partition.window)
    content, years = like(partition.content, draws), numbers(partition.years, left)
    leader, others = ((rows_of(content, each), rows_of(years, each)) for each in (middle, window))
    scores = likeness(*leader, *others, settings) + settings.noise * uniform(subkey(key, "alike", step), window)
    scores = xp.where(window >= 0, scores, -10.0)
    best = scores == xp.max(scores, axis=-1)[..., None]
    nearest = xp.argmin(xp.where(best, own_values(distance, window), np.inf), axis=-1)[..., None]
    return own_values(window, nearest)
