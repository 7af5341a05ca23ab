"""Pseudo items in whole public groups, for many clients. ``pseudo_items/grouped.py`` is the readable form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.fast.compiling import kernel, mix, section, to_unit
from fedrecplus.fast.filling import cosine
from fedrecplus.fast.sorting import sort_by
from fedrecplus.protocol import PublicItems
from fedrecplus.pseudo_items import grouped
from fedrecplus.randomness import purpose
from fedrecplus.similarity import unit_rows

_FEW = np.uint64(purpose("few"))
_GROUPS = np.uint64(purpose("groups"))
_ALIKE = np.uint64(purpose("alike"))


@dataclass(frozen=True)
class PublicGroups:
    """The partition of all items, and the catalogue's word on the item that stands for each group."""

    of_item: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    content: NDArray[np.float64]
    years: NDArray[np.int64]
    """empty where there is no catalogue"""


def public_groups(public: PublicItems, size: int) -> PublicGroups:
    """Groups of this size, with all that the kernel asks about them."""
    of_item = grouped.groups(public, size)
    members, starts = grouped.members(of_item)
    leaders = members[starts[:-1]]
    years = public.years[leaders] if len(public.years) else public.years
    return PublicGroups(of_item, members, starts, unit_rows(public.content[leaders]), years)


@kernel
def whole_groups(
    clients: Any,
    indptr: Any,
    items: Any,
    pseudo_indptr: Any,
    group: Any,
    members: Any,
    starts: Any,
    content: Any,
    years: Any,
    nearby: int,
    same_year: float,
    chance: float,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    out: Any,
) -> None:
    """The unrated items of all groups that hold a rated one; then whole groups like these, until there are enough."""
    rater = np.full(len(group), -1, np.int64)
    taker = np.full(len(starts) - 1, -1, np.int64)
    touched, mates = np.empty(len(taker), np.int64), np.empty(len(group), np.int64)
    ranks = np.empty(len(group), np.uint64)
    for client in clients:
        n = np.int64(0)  # see hybrid: a plain 0 is a type of its own
        for at in range(indptr[client], indptr[client + 1]):
            own = group[items[at]]
            rater[items[at]] = client
            if taker[own] != client:
                taker[own] = client
                touched[n] = own
                n += 1
        found = np.int64(0)
        for place in range(n):
            for at in range(starts[touched[place]], starts[touched[place] + 1]):
                if rater[members[at]] != client:
                    mates[found] = members[at]
                    found += 1
        first, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
        # one sort for both cases, since each is compiled by itself: mates by a draw where there are too many of them,
        # else touched groups by number, to draw from
        few = found > wanted
        values, length = (mates, found) if few else (touched, n)
        for place in range(length):
            value = np.uint64(values[place])
            ranks[place] = mix(mix(key, _FEW), value) if few else value
        sort_by(ranks, values, length)
        found = min(found, wanted)
        for place in range(found):
            out[first + place] = mates[place]
        number = 0
        while found < wanted:
            anchor = to_unit(mix(mix(key, _GROUPS), np.uint64(2 * number)))
            lower_first = to_unit(mix(mix(key, _GROUPS), np.uint64(2 * number + 1))) < 0.5
            middle = touched[np.int64(anchor * n)]
            best = _free_group(
                middle, lower_first, client, taker, nearby, content, years, same_year, chance,
                mix(mix(key, _ALIKE), np.uint64(number)),
            )  # fmt: skip
            taker[best] = client
            for at in range(starts[best], min(starts[best + 1], starts[best] + wanted - found)):
                out[first + found] = members[at]
                found += 1
            number += 1


@section
def _free_group(
    middle: int,
    lower_first: bool,
    client: int,
    taker: Any,
    nearby: int,
    content: Any,
    years: Any,
    same_year: float,
    chance: float,
    key: Any,
) -> int:
    """The most alike, by the catalogue and a secret draw, of the free groups nearest in popularity."""
    lower, upper = middle - 1, middle + 1
    best, best_score = -1, -10.0
    for _ in range(nearby):
        while lower >= 0 and taker[lower] == client:
            lower -= 1
        while upper < len(taker) and taker[upper] == client:
            upper += 1
        if lower < 0 and upper >= len(taker):
            break
        ahead = upper - middle - (middle - lower)  # how much farther the upper one is
        if lower >= 0 and (upper >= len(taker) or ahead > 0 or (ahead == 0 and lower_first)):
            candidate = lower
            lower -= 1
        else:
            candidate = upper
            upper += 1
        score = _likeness(middle, candidate, content, years, same_year)
        score += chance * to_unit(mix(key, np.uint64(candidate)))
        if score > best_score:
            best, best_score = candidate, score
    return best


@section
def _likeness(first: int, second: int, content: Any, years: Any, same_year: float) -> float:
    """How alike two groups' leaders are by the catalogue: cosine of contents, and nearness in years."""
    alike = cosine(first, second, content)
    if len(years) > 0 and years[first] > 0 and years[second] > 0:
        apart = float(years[first] - years[second])
        alike += same_year * np.exp(-0.25 * apart * apart)
    return float(np.rint(alike * 1e10) / 1e10)
