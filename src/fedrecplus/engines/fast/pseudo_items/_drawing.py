"""Keyed draws of unrated items, for many clients. ``parts/pseudo_items/_sets.py`` is the readable form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import inner, kernel, mix, to_unit
from fedrecplus.engines.fast.sorting import above


def nobody(count: int) -> NDArray[np.int64]:
    """Who has taken each of so many things: nobody yet. Arrays that are made inside kernels take time to compile."""
    return np.full(count, -1, np.int64)


@kernel
def draw(clients: Any, rated: Any, shares: Any, patience: int, keys: Any, taken: Any, out: Any) -> None:
    """Unrated items in a keyed sequence of draws: uniform where ``shares`` is empty, else by cumulative shares."""
    indptr, items, pseudo_indptr, secrets = rated.indptr, rated.items, rated.pseudo_indptr, keys.secrets
    item_count = len(taken)
    for client in clients:
        first, own = indptr[client], indptr[client + 1] - indptr[client]
        to, wanted = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        if all_taken(client, items, first, own, to, wanted, taken, out):
            continue
        key = mix(mix(secrets[client], keys.purpose), keys.round)
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
def all_taken(client: int, items: Any, first: int, rated: int, to: int, wanted: int, taken: Any, out: Any) -> bool:
    """Mark what the client rated; where no fewer items are wanted than are left, take all of them and say so."""
    for at in range(first, first + rated):
        taken[items[at]] = client
    if wanted < len(taken) - rated:
        return False
    found = 0
    for item in range(len(taken)):
        if taken[item] != client and found < wanted:
            out[to + found] = item
            found += 1
    return True
