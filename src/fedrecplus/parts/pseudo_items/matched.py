"""For every rated item an unrated one that is about as popular and much like it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import PseudoItems, SetSettings
from fedrecplus.parts.pseudo_items._sets import set_key
from fedrecplus.parts.similarity import similarity
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import keys, subkey, uniform


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

    def select(self, count: int, device: Device, broadcast: Broadcast) -> NDArray[np.int64]:
        """Go through the rated items in a secret order, again and again, and match each with an item not taken yet.

        Ours: rated items are popular, and their neighbours in a feature space mostly are not. Items that are as popular
        as the rated ones leave an attacker who knows what is popular nothing to go by, and V's rows as much real
        evidence per upload in the tail as at the top.
        """
        items = len(broadcast.V)
        if count >= items - len(device.items):
            return np.setdiff1d(np.arange(items), device.items)
        ranking = by_popularity(broadcast.public.popularity)
        place = np.argsort(ranking, kind="stable")
        taken = np.zeros(items, dtype=bool)
        taken[device.items] = True
        key = set_key(device.secret, self.settings, broadcast.round)
        order = device.items[np.argsort(keys(key, device.items), kind="stable")]
        chosen = np.empty(count, dtype=np.int64)
        for place_of in range(count):
            rated = order[place_of % len(order)]
            window = _nearest_free(int(place[rated]), ranking, taken, self.settings.window)
            likeness = similarity(broadcast.features[window], broadcast.features[[rated]])[:, 0]
            scores = likeness + self.settings.noise * uniform(subkey(key, int(rated)), window)
            chosen[place_of] = window[np.lexsort((window, -scores))[0]]
            taken[chosen[place_of]] = True
        return np.sort(chosen)


def by_popularity(popularity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Items, the most popular first; ties go to the lower item number. Ours: one order that everybody can compute."""
    return np.lexsort((np.arange(len(popularity)), -popularity))


def _nearest_free(at: int, ranking: NDArray[np.int64], taken: NDArray[np.bool_], window: int) -> NDArray[np.int64]:
    """The items nearest in rank that are not taken, one from above and one from below in turn."""
    above = ranking[:at][::-1]
    below = ranking[at + 1 :]
    above, below = above[~taken[above]], below[~taken[below]]
    turns = np.concatenate([2 * np.arange(len(above)), 2 * np.arange(len(below)) + 1])
    return np.concatenate([above, below])[np.argsort(turns, kind="stable")[:window]]
