"""Kernels for pseudo items. They give what the files in ``pseudo_items/`` give, for many clients, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.fast.compiling import inner, kernel, mix, section, to_unit
from fedrecplus.fast.filling import cosine
from fedrecplus.fast.sorting import above, part_at, sort_by


@kernel
def put_in_order(clients: Any, pseudo_indptr: Any, out: Any) -> None:
    """Each client's items ascending. A kernel of its own: sorting inside the others is compiled anew for each."""
    for client in clients:
        first, n = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        numbers, same = np.empty(n, np.uint64), np.empty(n, np.int64)
        for place in range(n):
            numbers[place] = out[first + place]
        sort_by(numbers, same, n)
        for place in range(n):
            out[first + place] = numbers[place]


@kernel
def draw(
    clients: Any,
    indptr: Any,
    items: Any,
    pseudo_indptr: Any,
    shares: Any,
    patience: int,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    item_count: int,
    out: Any,
) -> None:
    """Unrated items in a keyed sequence of draws: uniform where ``shares`` is empty, else by cumulative shares."""
    taken = np.full(item_count, -1, np.int64)
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        for at in range(first, first + rated):
            taken[items[at]] = client
        if wanted >= item_count - rated:
            _take_all(taken, client, to, wanted, out)
            continue
        key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
        found = 0
        number = 0
        while found < wanted:
            unit = to_unit(mix(key, np.uint64(number)))
            by_shares = len(shares) > 0 and number < patience * item_count
            item = above(shares, len(shares), unit) if by_shares else np.int64(unit * item_count)
            number += 1
            if taken[item] != client:
                taken[item] = client
                out[to + found] = item
                found += 1


@inner
def _take_all(taken: Any, client: int, to: int, wanted: int, out: Any) -> None:
    found = 0
    for item in range(len(taken)):
        if taken[item] != client and found < wanted:
            out[to + found] = item
            found += 1


@kernel
def likeness_by_rank(first: int, last: int, ranking: Any, features: Any, out: Any) -> None:
    """The rounded cosines of the items at some ranks and those at the ranks around them; its own is in the middle."""
    half = out.shape[1] // 2
    for at in range(first, last):
        for other in range(max(at - half, 0), min(at + half + 1, len(ranking))):
            out[at, half + other - at] = cosine(ranking[at], ranking[other], features)


@kernel
def match(
    clients: Any,
    indptr: Any,
    items: Any,
    pseudo_indptr: Any,
    ranking: Any,
    place: Any,
    near: Any,
    features: Any,
    size: int,
    chance: float,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    out: Any,
) -> None:
    """For every rated item, again and again, the best of the unrated items that are nearest in popularity."""
    item_count = len(ranking)
    taken = np.full(item_count, -1, np.int64)
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        for at in range(first, first + rated):
            taken[items[at]] = client
        if wanted >= item_count - rated:
            _take_all(taken, client, to, wanted, out)
            continue
        key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
        draws, order = np.empty(rated, np.uint64), np.empty(rated, np.int64)
        for number in range(rated):
            draws[number] = mix(key, np.uint64(items[first + number]))
            order[number] = items[first + number]
        sort_by(draws, order, rated)
        for number in range(wanted):
            item = order[number % rated]
            own_key = mix(key, np.uint64(item))
            match = _best_match(item, client, own_key, ranking, place, taken, near, features, size, chance)
            out[to + number] = match
            taken[match] = client


@section
def _best_match(
    item: int,
    client: int,
    key: Any,
    ranking: Any,
    place: Any,
    taken: Any,
    near: Any,
    features: Any,
    size: int,
    chance: float,
) -> int:
    """The most alike, by cosine and a secret draw, of the free items nearest in rank."""
    at, half = place[item], near.shape[1] // 2
    up, down = at - 1, at + 1
    best, best_score, seen = -1, -10.0, 0
    from_above = True
    while seen < size and (up >= 0 or down < len(ranking)):
        while up >= 0 and taken[ranking[up]] == client:
            up -= 1
        while down < len(ranking) and taken[ranking[down]] == client:
            down += 1
        if up < 0 and down >= len(ranking):
            break
        if (from_above and up >= 0) or down >= len(ranking):
            rank = up
            up -= 1
        else:
            rank = down
            down += 1
        candidate = ranking[rank]
        from_above = not from_above
        seen += 1
        like = near[at, half + rank - at] if abs(rank - at) <= half else cosine(candidate, item, features)
        score = like + chance * to_unit(mix(key, np.uint64(candidate)))
        if score > best_score or (score == best_score and candidate < best):
            best, best_score = candidate, score
    return best


@kernel
def top_similar(
    clients: Any, indptr: Any, items: Any, pseudo_indptr: Any, table: Any, item_count: int, out: Any
) -> None:
    """The top k unrated items of each client, where the table of all similarities is at hand.

    A rated item's row of the table is read once, in order: many short steps of a merge cost more than that.
    """
    taken = np.full(item_count, -1, np.int64)
    scores, parted = np.empty(item_count), np.empty(item_count)
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        for at in range(first, first + rated):
            taken[items[at]] = client
        if wanted >= item_count - rated:
            _take_all(taken, client, to, wanted, out)
            continue
        if wanted == 0:
            continue
        for item in range(item_count):
            scores[item] = -2.0
        for at in range(first, first + rated):
            row = np.uint64(items[at])
            for other in range(np.uint64(item_count)):
                scores[other] = max(scores[other], table[row, other])
        for at in range(first, first + rated):
            scores[items[at]] = -3.0
        for item in range(item_count):
            parted[item] = scores[item]
        lowest = part_at(parted, item_count, item_count - wanted)
        above = 0
        for item in range(item_count):
            above += scores[item] > lowest
        ties, found = wanted - above, 0
        for item in range(item_count):  # ascending, so that of equal items the lower numbers are taken
            if scores[item] > lowest or (scores[item] == lowest and ties > 0):
                ties -= scores[item] == lowest
                out[to + found] = item
                found += 1


@kernel
def merge_neighbours(
    clients: Any,
    indptr: Any,
    items: Any,
    pseudo_indptr: Any,
    neighbours: Any,
    likeness: Any,
    item_count: int,
    out: Any,
    unsure: Any,
) -> None:
    """The top k unrated items of each client, as a lazy merge of its rated items' sorted neighbour lists.

    A heap holds the head of every list. The first time an item is popped, the likeness is its greatest: items come in
    the order of their score, and the merge ends after k of them. Lists may be cut: where the merge reaches the end of
    one, the client is marked ``unsure`` and must be done in full.
    """
    taken = np.full(item_count, -1, np.int64)
    length = neighbours.shape[1]
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        for at in range(first, first + rated):
            taken[items[at]] = client
        if wanted >= item_count - rated:
            _take_all(taken, client, to, wanted, out)
            continue
        heap, place, own = np.empty(rated, np.int64), np.empty(rated, np.int64), np.empty(rated, np.int64)
        size = 0
        for source in range(rated):
            heap[size], place[source], own[source] = source, 0, items[first + source]
            size += 1
            _up(heap, size - 1, place, own, neighbours, likeness)
        found = 0
        while found < wanted:
            top = heap[0]
            item = neighbours[own[top], place[top]]
            if taken[item] != client:
                taken[item] = client
                out[to + found] = item
                found += 1
            place[top] += 1
            if place[top] >= length:
                if length < item_count:
                    unsure[client] = True
                    break
                size -= 1
                heap[0] = heap[size]
            _down(heap, size, place, own, neighbours, likeness)


@inner
def _before(first: int, second: int, place: Any, rated: Any, neighbours: Any, likeness: Any) -> bool:
    a, b = rated[first], rated[second]
    like_a, like_b = likeness[a, place[first]], likeness[b, place[second]]
    if like_a != like_b:
        return bool(like_a > like_b)
    return bool(neighbours[a, place[first]] < neighbours[b, place[second]])


@section
def _up(heap: Any, at: int, place: Any, rated: Any, neighbours: Any, likeness: Any) -> None:
    while at > 0:
        parent = (at - 1) // 2
        if not _before(heap[at], heap[parent], place, rated, neighbours, likeness):
            break
        heap[at], heap[parent] = heap[parent], heap[at]
        at = parent


@section
def _down(heap: Any, size: int, place: Any, rated: Any, neighbours: Any, likeness: Any) -> None:
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], place, rated, neighbours, likeness):
            child += 1
        if not _before(heap[child], heap[at], place, rated, neighbours, likeness):
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child
