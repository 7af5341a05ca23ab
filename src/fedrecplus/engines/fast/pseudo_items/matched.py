"""Kernels of ``parts/pseudo_items/matched.py``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel, mix, section, to_unit
from fedrecplus.engines.fast.chunks import on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Select
from fedrecplus.engines.fast.likeness import CACHED_NUMBERS, cosine
from fedrecplus.engines.fast.pseudo_items._drawing import all_taken, nobody
from fedrecplus.engines.fast.sorting import sort_by
from fedrecplus.parts.pseudo_items.matched import Settings, by_popularity


class Band(NamedTuple):
    """Items by popularity, and the likeness of those near each other in that order."""

    ranking: Any
    place: Any
    near: Any
    features: Any
    window: int
    noise: float


def selector(some: Drawing, options: Settings) -> Select:
    """Match for some clients, with the likeness of items near in rank at hand: few of all pairs ever meet."""
    features = some.message.features
    ranking = by_popularity(some.message.public.popularity)
    place = np.argsort(ranking, kind="stable")
    near = near_in_rank(features, ranking, 2 * options.window)
    rated, keys = some.rated, some.keys("pseudo-items")
    band = Band(ranking, place, near, features, options.window, options.noise)

    def select(clients: Clients, out: Any) -> None:
        items, most = len(ranking), some.most_rated(clients)
        taken = nobody(items), nobody(items), np.empty(items, np.int64), np.empty(items, np.int64)
        match(clients, rated, band, keys, taken, np.empty(most, np.uint64), np.empty(most, np.int64), out)

    return select


def near_in_rank(features: NDArray[np.float64], ranking: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """Likeness of the items at each rank and those at most ``width`` ranks from it."""
    near = np.empty((len(ranking), 2 * width + 1))
    block = max(1, CACHED_NUMBERS // near.shape[1])

    def fill(first: int) -> None:
        likeness_by_rank(first, min(first + block, len(ranking)), ranking, features, near)

    on_threads(fill, range(0, len(ranking), block))
    return near


@kernel
def likeness_by_rank(first: int, last: int, ranking: Any, features: Any, out: Any) -> None:
    """The rounded cosines of the items at some ranks and those at the ranks around them; its own is in the middle."""
    half = out.shape[1] // 2
    for at in range(first, last):
        for other in range(max(at - half, 0), min(at + half + 1, len(ranking))):
            out[at, half + other - at] = cosine(ranking[at], ranking[other], features)


@kernel
def match(clients: Any, rows: Any, band: Any, keys: Any, marks: Any, draws: Any, order: Any, out: Any) -> None:
    """For every rated item, again and again, the best of the unrated items that are nearest in popularity.

    ``marks`` say who has taken an item and a rank, and where free ranks are above and below one that is taken.
    """
    indptr, items, pseudo_indptr, secrets = rows.indptr, rows.items, rows.pseudo_indptr, keys.secrets
    ranking, place, near, features = band.ranking, band.place, band.near, band.features
    taken, taker, above, below = marks
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        if all_taken(client, items, first, rated, to, wanted, taken, out):
            continue
        key = mix(mix(secrets[client], keys.purpose), keys.round)
        for number in range(rated):
            draws[number] = mix(key, np.uint64(items[first + number]))
            order[number] = items[first + number]
            _take(place[items[first + number]], client, taker, above, below)
        sort_by(draws, order, rated)
        for number in range(wanted):
            item = order[number % rated]
            own_key = mix(key, np.uint64(item))
            rank = _best_match(
                place[item], client, own_key, ranking, taker, above, below, near, features, band.window, band.noise
            )
            out[to + number] = ranking[rank]
            _take(rank, client, taker, above, below)


@section
def _best_match(
    at: int,
    client: int,
    key: Any,
    ranking: Any,
    taker: Any,
    above: Any,
    below: Any,
    near: Any,
    features: Any,
    size: int,
    chance: float,
) -> int:
    """The rank of the most alike, by cosine and a secret draw, of the free items nearest to a rank.

    Who has rated much has taken long runs of ranks: the way over a run is kept, so that it is gone once.
    """
    half, count = near.shape[1] // 2, len(ranking)
    up, down = at - 1, at + 1
    best, best_score, seen = -1, -10.0, 0
    from_above = True
    while seen < size:
        start = up
        while up >= 0 and taker[up] == client:
            up = above[up]
        if up != start:
            above[start] = up
        start = down
        while down < count and taker[down] == client:
            down = below[down]
        if down != start:
            below[start] = down
        if up < 0 and down >= count:
            break
        if (from_above and up >= 0) or down >= count:
            rank = up
            up -= 1
        else:
            rank = down
            down += 1
        from_above = not from_above
        seen += 1
        like = near[at, half + rank - at] if abs(rank - at) <= half else cosine(ranking[rank], ranking[at], features)
        if like + chance < best_score:  # no draw could make it the best, and draws cost most of the time
            continue
        score = like + chance * to_unit(mix(key, np.uint64(ranking[rank])))
        if score > best_score or (score == best_score and ranking[rank] < ranking[best]):
            best, best_score = rank, score
    return best


@section
def _take(rank: int, client: int, taker: Any, above: Any, below: Any) -> None:
    taker[rank], above[rank], below[rank] = client, rank - 1, rank + 1
