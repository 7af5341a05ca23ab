"""A regression of each item on all others: how likely an item is beside rows that are rated with some chance.

Learned from people's sets of items, certain or probable ones. After: Steck 2019 (EASE)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items


@dataclass(frozen=True)
class ItemRegression:
    """With P = (XᵀX + λI)⁻¹ over all people X, an item's weights are −P_ij/P_ii."""

    half: Array
    """H = L⁻¹X with LLᵀ = XXᵀ + λI, so that P = (I − HᵀH)/λ"""
    decay: float

    @classmethod
    def of(cls, X: Array, ridge: float) -> ItemRegression:
        """Learned from these people, a row each, with a weight decay per person."""
        decay = ridge * max(len(X), 1)
        root = np.linalg.cholesky(X @ X.T + decay * np.eye(len(X)))
        return cls(scipy.linalg.solve_triangular(root, X, lower=True), decay)

    def likely(self, items: Items, chance: Array, removed: Array | None = None) -> Array:
        """How likely each of these items is beside the others, each of which is rated with a chance.

        ``removed``: a row of X that is taken out of what was learned, in closed form: it changes P by a multiple of
        (Px)(Px)ᵀ.
        """
        mine = np.zeros(self.half.shape[1])
        mine[items] = chance
        toward = self._inverse_times(mine)[items]
        diagonal = (1.0 - (self.half[:, items] ** 2).sum(axis=0)) / self.decay
        if removed is not None:
            out = self._inverse_times(removed)
            left = max(1.0 - float(out @ removed), 1e-9)
            toward = toward + out[items] * float(out @ mine) / left
            diagonal = diagonal + out[items] ** 2 / left
        return np.asarray(chance - toward / diagonal)

    def _inverse_times(self, x: Array) -> Array:
        product: Array = (x - self.half.T @ (self.half @ x)) / self.decay
        return product


@dataclass(frozen=True)
class KnownSets:
    """People whose sets of items somebody has, and what goes together in them."""

    of_person: Mapping[int, Items]
    regression: ItemRegression

    @classmethod
    def learned(cls, of_person: Mapping[int, Items], items: int, ridge: float) -> KnownSets:
        """From these people's sets, of so many items in all."""
        X = np.zeros((len(of_person), items))
        for row, own in zip(X, of_person.values(), strict=True):
            row[own] = 1.0
        return cls(of_person, ItemRegression.of(X, ridge))

    def likely(self, items: Items, chance: Array, without: int | None = None) -> Array:
        """See ``ItemRegression.likely``; ``without`` one of the people, if it is one, whose own set is taken out."""
        if without is None or without not in self.of_person:
            return self.regression.likely(items, chance)
        removed = np.zeros(self.regression.half.shape[1])
        removed[self.of_person[without]] = 1.0
        return self.regression.likely(items, chance, removed)

    def has(self, person: int, items: Items) -> NDArray[np.bool_]:
        """Which of these items are in a person's set."""
        return np.isin(items, self.of_person[person])
