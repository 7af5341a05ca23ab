"""What made-up ratings come from: how good, how alike and how popular items are, and what clients like.

A rating's expectation, in standard units, is 3.5 + client's bias + item's bias + p · q. Clients' p are drawn from a key
when they are asked for; only items are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Catalogue
from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError
from fedrecplus.randomness import normal, subkey, uniform
from fedrecplus.settings import Annotated, Settings, number, read_settings, settings_of, text

SYNTHETIC = "synthetic"


class SyntheticOptions(Settings):
    """How many made-up ratings, and how they come about.

    >>> str(SyntheticOptions.parse("clients=50,noise=0"))
    'synthetic:clients=50,noise=0.0'
    """

    clients: Annotated[int, number(2, 2**31 - 1, "how many clients")] = 1000
    items: Annotated[int, number(2, 2**24, "how many items")] = 500
    ratings_per_client: Annotated[int, number(1, 2**24, "the mean; nobody rates more than all items")] = 50
    factors: Annotated[int, number(1, 1024, "rank of the truth, biases aside")] = 8
    noise: Annotated[float, number(0, 100, "sd of what the truth doesn't explain, in standard units")] = 0.5
    popularity: Annotated[float, number(0, 2, "Zipf's exponent; 0: all items are as popular")] = 1.0
    activity: Annotated[float, number(0, 3, "sd of the logarithm of a client's ratings; MovieLens: about 1")] = 1.0
    scale: Annotated[str, text("rating scale, low:high:step")] = "1:5:1"
    seed: Annotated[int, number(0, 2**62, "of all draws")] = 0

    @staticmethod
    def parse(given: str) -> SyntheticOptions:
        """Read ``name=value,name=value``."""
        pairs = (part.partition("=") for part in given.split(",") if part.strip())
        options = read_settings(SyntheticOptions, {name.strip(): value.strip() for name, _, value in pairs}, SYNTHETIC)
        if options.ratings_per_client > options.items:
            raise UserError(
                f"synthetic: ratings_per_client={options.ratings_per_client} of {options.items} items",
                "nobody rates an item twice: give more items or fewer ratings",
            )
        Scale.parse(options.scale)
        return options

    def __str__(self) -> str:
        """As it is written to get these options: what differs from the defaults."""
        values = [(setting, getattr(self, setting.name)) for setting in settings_of(SyntheticOptions)]
        chosen = ",".join(f"{setting.name}={value}" for setting, value in values if value != setting.default)
        return f"{SYNTHETIC}:{chosen}" if chosen else SYNTHETIC


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
