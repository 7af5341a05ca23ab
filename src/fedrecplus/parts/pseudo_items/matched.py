"""For every rated item an unrated one that is about as popular and much like it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import (
    NOTHING,
    cumulative,
    marked,
    namespace,
    numbers,
    own_values,
    places_of,
    remember_last,
    rows_of,
    subkey,
    uniform,
)
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import (
    Count,
    Items,
    PseudoItems,
    SetSettings,
    by_kernel,
    candidates,
    kernels,
    set_key,
)
from fedrecplus.parts.similarity import similarity_matrix
from fedrecplus.protocol import Broadcast


class Settings(SetSettings):
    """Options of the rule."""

    window: ClassVar[int] = 32
    """unrated items nearest in popularity that a match is chosen from"""
    noise: ClassVar[float] = 0.3
    """weight of a secret draw beside the cosine, which anybody can compute"""


class Matched(PseudoItems[Settings]):
    """A match for each rated item."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfPseudoItems(popularity=0.3, co_occurrence="neither")

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """Go through the rated items in a secret order, again and again, and match each with an item not taken yet.

        Ours: rated items are popular, and their neighbours in a feature space mostly are not. Items that are as popular
        as the rated ones leave an attacker who knows what is popular nothing to go by, and V's rows as much real
        evidence per upload in the tail as at the top.
        """
        items, ranking = len(broadcast.V), by_popularity(broadcast.public.popularity)
        key = set_key(device.secret, self.settings, broadcast.round)
        order = in_secret_order(device.items, key)
        if isinstance(order, np.ndarray) and order.ndim > 1:
            choice = (key, ranking, broadcast.features, self.settings.window, self.settings.noise)
            return by_kernel(kernels().match, count, order, items, *choice)
        xp, unrated, wanted = candidates(count, device.items, items)
        rated = xp.sum(device.items >= 0, axis=-1)
        ranking, chosen = numbers(ranking, order), unrated & (wanted == xp.sum(unrated, axis=-1))[..., None]
        for step in range(int(xp.max(wanted)) if bool(xp.any(wanted > xp.sum(chosen, axis=-1))) else 0):
            item = own_values(order, (step % xp.clip(rated, 1, None))[..., None])
            match = self.match(item, ranking, (unrated & ~chosen)[..., ranking], key, broadcast.features)
            chosen = chosen | marked(xp.where((step < wanted)[..., None], match, NOTHING), items)
        return places_of(chosen, int(xp.max(wanted)))

    def match(self, item: Items, ranking: Items, free: NDArray[np.bool_], key: Any, features: Any) -> Items:
        """The most alike, by cosine and a secret draw, of the free items nearest in rank to an item (…, 1).

        Ours: see ``select``; of equal ones the lower item number.
        """
        xp, size = namespace(free), self.settings.window
        at = xp.argmax(xp.astype(ranking == item, xp.int64), axis=-1)[..., None]
        window = places_of(nearest_free(at, free, size), size)
        items = xp.where(window >= 0, rows_of(ranking, window), NOTHING)
        likeness = similarity_matrix(rows_of(features, items), rows_of(features, item))[..., 0]
        scores = likeness + self.settings.noise * uniform(subkey(key, item[..., 0]), items)
        scores = xp.where(window >= 0, scores, -10.0)
        best = scores == xp.max(scores, axis=-1)[..., None]
        return xp.min(xp.where(best, items, len(ranking)), axis=-1)[..., None]  # type: ignore[no-any-return]


@remember_last
def by_popularity(popularity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Items, the most popular first; ties go to the lower item number. Ours: one order that everybody can compute."""
    return np.lexsort((np.arange(len(popularity)), -popularity))


def in_secret_order(rated: Items, key: Any) -> Items:
    """Each client's rated items by a keyed draw. Ours: whom matches run out for must not follow from the ratings."""
    xp = namespace(rated)
    draws = xp.where(rated >= 0, uniform(key, rated), 2.0)
    return own_values(rated, xp.argsort(draws, axis=-1, stable=True))


def nearest_free(at: Items, free: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """The free ranks nearest to a rank (…, 1), one from above and one from below in turn.

    >>> nearest_free(np.array([2]), np.array([True, True, False, False, True, True]), 3).tolist()
    [True, True, False, False, True, False]

    Ours: as popular as the item itself.
    """
    xp = namespace(free)
    ranks = numbers(np.arange(free.shape[-1]), at)
    above, below = free & (ranks < at), free & (ranks > at)
    lower, upper = xp.sum(above, axis=-1)[..., None], xp.sum(below, axis=-1)[..., None]
    of_above = xp.minimum(lower, xp.clip(size - upper, (size + 1) // 2, None))
    of_below = xp.clip(size - lower, size // 2, None)
    return (above & (cumulative(above) > lower - of_above)) | (below & (cumulative(below) <= of_below))  # type: ignore[no-any-return]
