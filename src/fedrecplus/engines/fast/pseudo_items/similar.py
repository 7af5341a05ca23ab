"""Kernels of ``parts/pseudo_items/similar.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays.compiling import inner, kernel, section
from fedrecplus.engines.fast import likeness as likenesses
from fedrecplus.engines.fast.drawing import Clients, Drawing, Select
from fedrecplus.engines.fast.pseudo_items._drawing import all_taken, nobody
from fedrecplus.engines.fast.sorting import part_at
from fedrecplus.parts.pseudo_items import SetSettings


def selector(some: Drawing, options: SetSettings) -> Select:
    """The top k of some clients: from the table of all similarities where it is small, else from neighbour lists."""
    rated, items = some.rated, len(some.message.V)
    if items <= likenesses.LARGEST_TABLE:
        table = likenesses.likeness_table(some.message.features)

        def from_table(clients: Clients, out: Any) -> None:
            top_similar(clients, rated, table, nobody(items), np.empty(items), np.empty(items), out)

        return from_table
    lists = likenesses.neighbour_lists(some.message.features)

    def from_lists(clients: Clients, out: Any) -> Clients:
        unsure = np.zeros(some.problem.ratings.clients, dtype=bool)
        merge_neighbours(clients, rated, lists.items, lists.likeness, items, out, unsure)
        return clients[unsure[clients]]

    return from_lists


@kernel
def top_similar(clients: Any, rows: Any, table: Any, taken: Any, scores: Any, parted: Any, out: Any) -> None:
    """The top k unrated items of each client, where the table of all similarities is at hand.

    A rated item's row of the table is read once, in order: many short steps of a merge cost more than that.
    """
    indptr, items, pseudo_indptr = rows.indptr, rows.items, rows.pseudo_indptr
    item_count = len(taken)
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        if all_taken(client, items, first, rated, to, wanted, taken, out):
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
    clients: Any, rows: Any, neighbours: Any, likeness: Any, item_count: int, out: Any, unsure: Any
) -> None:
    """The top k unrated items of each client, as a lazy merge of its rated items' sorted neighbour lists.

    A heap holds the head of every list. The first time an item is popped, the likeness is its greatest: items come in
    the order of their score, and the merge ends after k of them. Lists may be cut: where the merge reaches the end of
    one, the client is marked ``unsure`` and must be done in full.
    """
    indptr, items, pseudo_indptr = rows.indptr, rows.items, rows.pseudo_indptr
    taken = np.full(item_count, -1, np.int64)
    length = neighbours.shape[1]
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        if all_taken(client, items, first, rated, to, wanted, taken, out):
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
