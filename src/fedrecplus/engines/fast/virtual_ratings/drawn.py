"""Kernel of ``parts/virtual_ratings/drawn.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel, mix, to_unit
from fedrecplus.engines.fast.chunks import on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.likeness import CACHED_NUMBERS, cosine, likeness_table
from fedrecplus.engines.fast.sorting import above
from fedrecplus.parts.virtual_ratings.drawn import Settings, softened


def filler(some: Drawing, options: Settings) -> Fill:
    """Draws of some clients."""
    features, averages = some.message.features, some.message.public.averages()
    rated, keys = some.rated, some.keys("drawn")
    pairs = int((np.diff(rated.indptr) * np.diff(rated.pseudo_indptr)).sum())
    soft = (options.temperature, options.width)
    table = weight_table(features, averages, pairs, options)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        largest = some.most_rated(clients)
        drawn(clients, rated, items, table, features, averages, soft, keys, largest, out)

    return fill


def weight_table(
    features: NDArray[np.float64], averages: NDArray[np.float64], pairs: int, options: Settings
) -> NDArray[np.float64]:
    """All weights where the table is small and there are more pairs to weigh than in it; empty where they must be
    computed as needed."""
    items = len(features)
    table = likeness_table(features if pairs >= items**2 else features[:0])
    block = max(1, CACHED_NUMBERS // items)

    def soften(first: int) -> None:
        part = slice(first, first + block)
        table[part] = softened(table[part], averages[part], averages, options)

    on_threads(soften, range(0, len(table), block))
    return table


@kernel
def drawn(
    clients: Any,
    rated: Any,
    pseudo_items: Any,
    table: Any,
    features: Any,
    averages: Any,
    soft: Any,
    keys: Any,
    largest: int,
    out: Any,
) -> None:
    """One of the client's own ratings, drawn by weight: looked up where there is a table, computed where not."""
    indptr, items, codes, levels = rated.indptr, rated.items, rated.codes, rated.levels
    pseudo_indptr, secrets = rated.pseudo_indptr, keys.secrets
    temperature, width = soft
    shares = np.empty(largest)
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        key = mix(mix(secrets[client], keys.purpose), keys.round)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            item = pseudo_items[place]
            total = 0.0
            if table.shape[0] > 0:
                for at in range(n):
                    total += table[item, items[first + at]]
                    shares[at] = total
            else:
                for at in range(n):
                    other = items[first + at]
                    apart = (averages[item] - averages[other]) / width
                    like = cosine(np.int64(item), np.int64(other), features)
                    total += np.exp((like - 1.0) / temperature - 0.5 * apart * apart)
                    shares[at] = total
            drawn_at = above(shares, n, to_unit(mix(key, np.uint64(item))) * total)
            out[place] = levels[codes[first + min(drawn_at, n - 1)]]
