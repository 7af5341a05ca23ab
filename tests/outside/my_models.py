"""Models of somebody's own, for comparisons: they know nothing of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class ItemMean:
    """An estimator: the mean rating of each item, else of all."""

    def fit(self, X: Any, y: Any) -> ItemMean:
        self.mean = float(np.mean(y))
        self.of_item = {item: float(np.mean(y[X[:, 1] == item])) for item in set(X[:, 1].tolist())}
        return self

    def predict(self, X: Any) -> list[float]:
        return [self.of_item.get(item, self.mean) for item in X[:, 1].tolist()]


def everybodys_mean(training: Any) -> Callable[[Any, Any], Any]:
    """A function: what ``global-mean`` is."""
    mean = training.values.mean()
    return lambda users, items: np.full(len(users), mean)


class NoNumbers(ItemMean):
    """One that fails."""

    def predict(self, X: Any) -> list[float]:
        return [float("nan")] * len(X)


nothing = 3
