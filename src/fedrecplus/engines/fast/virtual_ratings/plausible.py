"""Kernel of ``parts/virtual_ratings/plausible.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays.compiling import kernel, mix, to_unit
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.parts.virtual_ratings.plausible import Settings


def filler(some: Drawing, options: Settings) -> Fill:
    """Averages and deviations of some clients."""
    averages = some.message.public.averages().astype(some.message.V.dtype)
    rated, keys = some.rated, some.keys("plausible")

    def fill(clients: Clients, items: Any, out: Any) -> None:
        plausible(clients, rated, items, averages, options.share, keys, out)

    return fill


@kernel
def plausible(clients: Any, rated: Any, pseudo_items: Any, averages: Any, share: float, keys: Any, out: Any) -> None:
    """The item's public average and one of the client's own deviations."""
    indptr, items, codes, levels = rated.indptr, rated.items, rated.codes, rated.levels
    pseudo_indptr, secrets = rated.pseudo_indptr, keys.secrets
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        key = mix(mix(secrets[client], keys.purpose), keys.round)
        bias = 0.0
        for at in range(first, first + n):
            bias += (levels[codes[at]] - averages[items[at]]) / n
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            at = first + np.int64(to_unit(mix(key, np.uint64(pseudo_items[place]))) * n)
            deviation = levels[codes[at]] - averages[items[at]]
            out[place] = averages[pseudo_items[place]] + bias + share * (deviation - bias)
