"""Predictors that learn next to nothing: what is no better than these is no recommender."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.training.evaluation import Predict

Array = NDArray[np.float64]

_ITEM_DAMPING, _CLIENT_DAMPING, _SWEEPS = 10.0, 15.0, 10


def global_mean(training: Ratings) -> Predict:
    """Everybody's mean rating, for everything."""
    mean = training.standard_values.mean()
    return lambda clients, _: np.full(len(clients), mean)


def bias_only(training: Ratings) -> Predict:
    """The global mean, what an item is above it, and what a client is above both, each damped by a few ratings.

    After: Koren 2010 (baseline estimates), fitted in turns.
    """
    values, clients, items = training.standard_values, training.client_of_rating, training.items
    mean = values.mean()
    of_client = np.zeros(training.clients)
    for _ in range(_SWEEPS):
        of_item = _damped_means(values - mean - of_client[clients], items, training.item_count, _ITEM_DAMPING)
        of_client = _damped_means(values - mean - of_item[items], clients, training.clients, _CLIENT_DAMPING)

    def predict(some_clients: NDArray[Any], some_items: NDArray[Any]) -> Array:
        ratings: Array = mean + of_client[some_clients] + of_item[some_items]
        return ratings

    return predict


def _damped_means(rest: Array, group: NDArray[Any], groups: int, damping: float) -> Array:
    sums = np.bincount(group, weights=rest, minlength=groups)
    means: Array = sums / (np.bincount(group, minlength=groups) + damping)
    return means


TRIVIAL: dict[str, Callable[[Ratings], Predict]] = {"global-mean": global_mean, "bias-only": bias_only}
"""their names, wherever algorithms are named"""
