"""What made-up ratings come from: how good, how alike and how popular items are, and what clients like.

A rating's expectation, in standard units, is 3.5 + client's bias + item's bias + p · q. Clients' p are drawn from a key
when they are asked for; only items are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.catalogue import Catalogue
from fedrecplus.data.synthetic.options import SyntheticOptions
from fedrecplus.randomness import normal, subkey, uniform

_CENTRE, _CLIENT_BIAS, _ITEM_BIAS, _TASTE = 3.5, 0.4, 0.5, 0.6
_MOST_GENRES = 8
_FIRST_YEAR, _YEARS = 1950, 75


@dataclass(frozen=True)
class LatentTruth:
    """The items' side of the truth, and the key to the clients' side."""

    options: SyntheticOptions
    key: int
    item_biases: NDArray[np.float64]
    item_factors: NDArray[np.float64]
    """items × factors; p · q has standard deviation 0.6, however many factors there are"""
    cumulative_popularity: NDArray[np.float64]
    """ends at 1; the popular items are spread over the numbers"""

    @staticmethod
    def of(options: SyntheticOptions) -> LatentTruth:
        """Draw the items. Ours: Zipf's law by a rank that says nothing of the item's number."""
        key = subkey(options.seed, "synthetic")
        numbers = np.arange(options.items)
        rank = np.empty(options.items)
        rank[np.argsort(uniform(subkey(key, "popularity"), numbers))] = numbers + 1.0
        cumulative = np.cumsum(rank**-options.popularity)
        factors = normal(subkey(key, "item factors"), np.arange(options.items * options.factors))
        return LatentTruth(
            options=options,
            key=key,
            item_biases=_ITEM_BIAS * normal(subkey(key, "item bias"), numbers),
            item_factors=factors.reshape(options.items, -1) * _TASTE / np.sqrt(options.factors),
            cumulative_popularity=cumulative / cumulative[-1],
        )

    def activity(self, clients: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many items each of these clients rates: log-normal, as MovieLens' counts nearly are."""
        options = self.options
        spread = options.activity * normal(subkey(self.key, "activity"), clients)
        counts: NDArray[np.float64] = options.ratings_per_client * np.exp(spread - options.activity**2 / 2)
        return np.rint(counts).clip(1, options.items).astype(np.int64)

    def expected(self, clients: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float64]:
        """The ratings without noise, in standard units, not clipped; one for each pair of client and item."""
        who, row = np.unique(clients, return_inverse=True)
        rank = self.options.factors
        places = who[:, None] * rank + np.arange(rank)
        tastes = normal(subkey(self.key, "client factors"), places.ravel()).reshape(-1, rank)
        biases = _CLIENT_BIAS * normal(subkey(self.key, "client bias"), who)
        matches = np.einsum("rf,rf->r", tastes[row], self.item_factors[items])
        return np.asarray(_CENTRE + biases[row] + self.item_biases[items] + matches)

    def catalogue(self) -> Catalogue:
        """A genre for each of the first factors, given to items high on it, so that content says something of taste."""
        genres = min(self.options.factors, _MOST_GENRES)
        typical = _TASTE / np.sqrt(self.options.factors)
        years = uniform(subkey(self.key, "years"), np.arange(self.options.items))
        return Catalogue(
            titles=tuple(f"Item {number}" for number in range(self.options.items)),
            years=(_FIRST_YEAR + np.floor(_YEARS * np.sqrt(years))).astype(np.int16),  # more of them of late
            genres=self.item_factors[:, :genres] > 0.7 * typical,
            genre_names=tuple(f"Genre {number}" for number in range(genres)),
        )
