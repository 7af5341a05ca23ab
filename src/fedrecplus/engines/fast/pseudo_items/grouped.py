"""Kernels of ``parts/pseudo_items/grouped.py``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedrecplus.arrays.compiling import kernel, mix, section, to_unit
from fedrecplus.engines.fast.drawing import Clients, Drawing, Select
from fedrecplus.engines.fast.likeness import cosine
from fedrecplus.engines.fast.pseudo_items._drawing import nobody
from fedrecplus.engines.fast.sorting import sort_by
from fedrecplus.parts.pseudo_items import grouped
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.randomness import purpose

_FEW = np.uint64(purpose("few"))
_GROUPS = np.uint64(purpose("groups"))
_ALIKE = np.uint64(purpose("alike"))


class Groups(NamedTuple):
    """The partition of all items, and the catalogue's word on the item that stands for each group."""

    of_item: Any
    members: Any
    starts: Any
    content: Any
    years: Any
    """empty where there is no catalogue"""
    window: int
    year_weight: float
    noise: float
    last_is_larger: bool


def selector(some: Drawing, options: grouped.Settings) -> Select:
    """Whole groups for some clients; the first item of a group stands for it where groups are compared."""
    public = some.message.public
    of_item = grouped.groups(public, options)
    members, starts = grouped.members(of_item)
    leaders = members[starts[:-1]]
    years = public.years[leaders] if len(public.years) else public.years
    content, window = unit_rows(public.content[leaders]), grouped.decoy_window(public, options)
    larger = len(of_item) % grouped.group_size(options) > 0
    groups = Groups(of_item, members, starts, content, years, window, options.year_weight, options.noise, larger)
    rated, keys = some.rated, some.keys("pseudo-items")

    def select(clients: Clients, out: Any) -> None:
        items, count = len(of_item), len(starts) - 1
        marks, ranks = (nobody(items), nobody(count)), np.empty(items, np.uint64)
        touched, mates = np.empty(count, np.int64), np.empty(items, np.int64)
        whole_groups(clients, rated, groups, keys, marks, touched, mates, ranks, out)

    return select


@kernel
def whole_groups(
    clients: Any, rows: Any, groups: Any, keys: Any, marks: Any, touched: Any, mates: Any, ranks: Any, out: Any
) -> None:
    """The unrated items of all groups that hold a rated one; then whole groups like these, until there are enough."""
    indptr, items, pseudo_indptr, secrets = rows.indptr, rows.items, rows.pseudo_indptr, keys.secrets
    group, members, starts, content, years = groups.of_item, groups.members, groups.starts, groups.content, groups.years
    rater, taker = marks  # of items and of groups
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
        key = mix(mix(secrets[client], keys.purpose), keys.round)
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
        last = len(taker) - 1
        if groups.last_is_larger and taker[last] != client:
            taker[last] = client  # no decoy while there are others
        while found < wanted:
            anchor = to_unit(mix(mix(key, _GROUPS), np.uint64(2 * number)))
            lower_first = to_unit(mix(mix(key, _GROUPS), np.uint64(2 * number + 1))) < 0.5
            middle = touched[np.int64(anchor * n)]
            drawn = mix(mix(key, _ALIKE), np.uint64(number))
            best = _free_group(middle, lower_first, client, taker, groups, content, years, drawn)
            best = last if best < 0 else best
            taker[best] = client
            for at in range(starts[best], min(starts[best + 1], starts[best] + wanted - found)):
                out[first + found] = members[at]
                found += 1
            number += 1


@section
def _free_group(
    middle: int, lower_first: bool, client: int, taker: Any, groups: Any, content: Any, years: Any, key: Any
) -> int:
    """The most alike, by the catalogue and a secret draw, of the free groups nearest in popularity."""
    lower, upper = middle - 1, middle + 1
    best, best_score = -1, -10.0
    for _ in range(groups.window):
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
        score = _likeness(middle, candidate, content, years, groups.year_weight)
        score += groups.noise * to_unit(mix(key, np.uint64(candidate)))
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
