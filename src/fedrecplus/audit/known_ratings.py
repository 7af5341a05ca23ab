"""Ratings that an attacker is assumed to have: what goes together in them, whoever they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.item_regression import ItemRegression

Array = NDArray[np.float64]
Items = NDArray[np.int64]
_RIDGE = 0.3
"""weight decay per person that is learned from"""


@dataclass(frozen=True)
class KnownRatings:
    """Who rated what, among the attacked people's items, and the regression learned from it."""

    rated: Mapping[int, Items]
    """person → rated items, ascending"""
    regression: ItemRegression
    items: int

    @classmethod
    def of(cls, rated: Mapping[int, Items], items: int) -> KnownRatings:
        """Learned from these people."""
        X = np.zeros((len(rated), items))
        for row, own in enumerate(rated.values()):
            X[row, own] = 1.0
        return cls(rated, ItemRegression.of(X, _RIDGE), items)

    def likely(self, items: Items, chance: Array, without: int | None = None) -> Array:
        """How likely each of these items is beside the others, each of which is rated with a chance.

        ``without``: a person whose own ratings are taken out of what was learned.
        """
        if without is None or without not in self.rated:
            return self.regression.likely(items, chance)
        removed = np.zeros(self.items)
        removed[self.rated[without]] = 1.0
        return self.regression.likely(items, chance, removed)
