"""What is true of the watched clients, and what an attack is asked about them. No attack sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from fedrecplus.arrays import Array, Items
from fedrecplus.randomness import subkey, uniform

_MATCHING = 20261116
"""key of the draws that break ties among items as popular as each other"""


@dataclass(frozen=True)
class AuditTruth:
    """The watched clients' ratings, in standard units, and the items that they are asked against."""

    of_client: Mapping[int, tuple[Items, Array]]
    """client → rated items, ascending, and their ratings"""
    step: float
    """distance between two ratings of the scale"""
    majority: float
    """the most frequent rating of all: what somebody who saw nothing would say"""
    popularity: Items
    """how many clients really rated each item"""
    usual: Array
    """each item's public average, on the scale: the guess of whoever has no other"""
    sums: Array = field(default_factory=lambda: np.zeros(0))
    """each item's sum of ratings over all clients"""
    against: Literal["pseudo", "unrated"] = "pseudo"
    """what rated items are to be told from: the pseudo rows of an upload, or unrated items as popular"""
    others: Mapping[int, int] = field(default_factory=dict)
    """client → somebody else, whose uploads stand in for its own in the control"""
    _asked: dict[tuple[int, bytes], Items] = field(default_factory=dict, repr=False)

    def of(self, client: int, items: Items) -> Array:
        """The client's rating of each item; nan where it has none."""
        rated, ratings = self.of_client[client]
        place = np.minimum(np.searchsorted(rated, items), len(rated) - 1)
        return np.where(rated[place] == items, ratings[place], np.nan)

    def question(self, client: int, told: Items | None = None) -> Items:
        """Rated items and as many unrated ones of matched popularity, ascending; none that the attacker was told.

        The client's own rating doesn't count, so that its absence from a control leaves pairs as popular as each other.
        Pairs are chosen together so that the popularities of all pairs differ least; rated items that find no partner,
        where more than half of the catalogue is rated, are not asked for.
        """
        told = np.zeros(0, np.int64) if told is None else told
        key = (client, told.tobytes())
        if key not in self._asked:
            self._asked[key] = self._matched(client, told)
        return self._asked[key]

    def _matched(self, client: int, told: Items) -> Items:
        every = self.of_client[client][0]
        rated, unrated = np.setdiff1d(every, told), np.setdiff1d(np.arange(len(self.popularity)), every)
        by_others = self.popularity.astype(np.float64)
        by_others[every] -= 1.0
        level = np.log1p(by_others)
        cost = np.abs(level[rated][:, None] - level[unrated])
        # ties are drawn by lot: item numbers often follow time
        cost += 1e-6 * uniform(subkey(_MATCHING, "ties", client), unrated)
        first, second = linear_sum_assignment(cost)
        return np.sort(np.concatenate([rated[first], unrated[second]]))


def somebody_else(clients: Items, key: int) -> dict[int, int]:
    """For each client another one: the next in a random circle. Empty where there is only one."""
    if len(clients) < 2:
        return {}
    order = clients[np.argsort(uniform(subkey(key, "somebody else"), clients), kind="stable")]
    return dict(zip(order.tolist(), np.roll(order, -1).tolist(), strict=True))
