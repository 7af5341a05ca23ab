"""Ratings that an attacker is assumed to have: what goes together in them, whoever they are of.

A regression of each item on all others, learned from people's true ratings, says how likely an item is beside rows that
are rated with some probability. After: Steck 2019 (EASE)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.float64]
Items = NDArray[np.int64]
_RIDGE = 0.3
"""weight decay per person that is learned from"""


@dataclass(frozen=True)
class KnownRatings:
    """Who rated what, among the attacked people's items, and the regression learned from it."""

    rated: Mapping[int, Items]
    """person → rated items, ascending"""
    half: Array
    """H with P = (I − HᵀH)/λ for P = (XᵀX + λI)⁻¹ over all people X"""
    decay: float

    @classmethod
    def of(cls, rated: Mapping[int, Items], items: int) -> KnownRatings:
        """Learned from these people."""
        X = np.zeros((len(rated), items))
        for row, own in enumerate(rated.values()):
            X[row, own] = 1.0
        decay = _RIDGE * max(len(X), 1)
        root = np.linalg.cholesky(X @ X.T + decay * np.eye(len(X)))
        return cls(rated, scipy.linalg.solve_triangular(root, X, lower=True), decay)

    def likely(self, items: Items, chance: Array, without: int | None = None) -> Array:
        """How likely each of these items is beside the others, each of which is rated with a chance.

        ``without``: a person whose own ratings are taken out of what was learned, in closed form.
        """
        mine = np.zeros(self.half.shape[1])
        mine[items] = chance
        toward = self._inverse_times(mine)[items]
        diagonal = (1.0 - (self.half[:, items] ** 2).sum(axis=0)) / self.decay
        if without is not None and without in self.rated:
            removed = np.zeros(len(mine))
            removed[self.rated[without]] = 1.0
            out = self._inverse_times(removed)
            left = max(1.0 - float(out @ removed), 1e-9)
            toward = toward + out[items] * float(out @ mine) / left
            diagonal = diagonal + out[items] ** 2 / left
        return np.asarray(chance - toward / diagonal)

    def _inverse_times(self, x: Array) -> Array:
        product: Array = (x - self.half.T @ (self.half @ x)) / self.decay
        return product
