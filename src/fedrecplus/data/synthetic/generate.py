"""Made-up ratings, client by client, straight into their narrow arrays.

Every draw is keyed by client and item: neither the size of the chunks nor how many clients there are changes a client.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fedrecplus import randomness
from fedrecplus.data.ratings import Progress, Ratings, narrowest
from fedrecplus.data.scale import Scale
from fedrecplus.data.synthetic.truth import LatentTruth, SyntheticOptions
from fedrecplus.randomness import keys, normal, subkey

_CLIENTS_AT_ONCE = 4096
_mix = numba.njit(randomness.mix)
_to_unit = numba.njit(randomness.to_unit)


def generate(
    options: SyntheticOptions, progress: Progress | None = None, clients_at_once: int = _CLIENTS_AT_ONCE
) -> Ratings:
    """All ratings. Only a chunk of clients is held in wide numbers at a time: 50 million ratings take 150 MB."""
    truth = LatentTruth.of(options)
    made = generate_some(truth, 0, options.clients, progress, clients_at_once)
    return replace(made, catalogue=truth.catalogue())


def generate_some(
    truth: LatentTruth,
    first_client: int,
    end: int,
    progress: Progress | None = None,
    clients_at_once: int = _CLIENTS_AT_ONCE,
) -> Ratings:
    """The ratings of the clients from the first up to, and without, ``end``; without a catalogue of the items."""
    options, scale = truth.options, Scale.parse(truth.options.scale)
    everybody = np.arange(first_client, end)
    indptr = np.concatenate([[0], np.cumsum(truth.activity(everybody))]).astype(np.int64)
    items = np.empty(indptr[-1], dtype=narrowest(options.items))
    codes = np.empty(indptr[-1], dtype=scale.codes(np.zeros(0)).dtype)
    for first in range(0, len(everybody), clients_at_once):
        clients = everybody[first : first + clients_at_once]
        part = slice(indptr[first], indptr[first + len(clients)])
        counts = np.diff(indptr[first : first + len(clients) + 1])
        _choose_items(keys(subkey(truth.key, "choice"), clients), counts, truth.cumulative_popularity, items[part])
        codes[part] = _rated(truth, scale, np.repeat(clients, counts), items[part].astype(np.int64))
        if progress:
            progress("synthetic clients", first + len(clients), len(everybody))
    return Ratings(
        name=str(options),
        scale=scale,
        indptr=indptr,
        items=items,
        codes=codes,
        client_ids=everybody,
        item_ids=np.arange(options.items),
        listed=True,
    )


def _rated(truth: LatentTruth, scale: Scale, clients: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[Any]:
    """Level numbers of what clients say of items: the truth, noise, then the nearest level."""
    cell = clients * truth.options.items + items
    noisy = truth.expected(clients, items) + truth.options.noise * normal(subkey(truth.key, "noise"), cell)
    return scale.codes(scale.restore(noisy))


@numba.njit(nogil=True, cache=True)  # type: ignore[misc, unused-ignore]
def _choose_items(
    keys: NDArray[np.uint64], counts: NDArray[np.int64], cumulative: NDArray[np.float64], chosen: NDArray[Any]
) -> None:
    """Write into ``chosen``, client after client and ascending, the first ``counts`` different items that each draws.

    Items are drawn with replacement by popularity, and what was drawn before is passed over: the same as drawing
    without replacement, and nothing as long as the catalogue is touched per client.
    """
    drawn_by = np.full(len(cumulative), -1, dtype=np.int64)
    start = 0
    for client in range(len(keys)):
        end, filled, draw = start + counts[client], start, np.uint64(0)
        while filled < end:
            item = np.searchsorted(cumulative, _to_unit(_mix(keys[client], draw)), side="right")
            draw += np.uint64(1)
            if drawn_by[item] != client:
                drawn_by[item] = client
                chosen[filled] = item
                filled += 1
        chosen[start:end].sort()
        start = end
