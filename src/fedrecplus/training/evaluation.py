"""Errors on test ratings, on the data's own scale, in blocks, so that no table of clients × items is ever made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings

Array = NDArray[np.float64]
Predict = Callable[[NDArray[Any], NDArray[Any]], Array]
"""client numbers, item numbers → predictions in standard units"""

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Predictor:
    """What predictions come from: r̂ = w_u·X_i."""

    W: NDArray[Any]
    """a row of weights per client, which in a deployment is on its device"""
    X: NDArray[Any]
    """a row of columns per item, which everybody knows"""
    Z: NDArray[Any] | None = None
    """a row of weights for lists per client, over the same columns; None where predicted ratings rank"""

    def predict(self, clients: NDArray[Any], items: NDArray[Any]) -> Array:
        """Predictions for pairs, in standard units."""
        ratings: Array = np.einsum("ij,ij->i", self.W[clients].astype(np.float64), self.X[items].astype(np.float64))
        return ratings

    def of_all_items(self, clients: NDArray[Any]) -> Array:
        """Predictions for all items, a row per client, in standard units."""
        ratings: Array = self.W[clients].astype(np.float64) @ self.X.T.astype(np.float64)
        return ratings

    def scores(self, clients: NDArray[Any]) -> Array:
        """What lists rank all items by, a row per client: the predictions, unless the model has better."""
        if self.Z is None:
            return self.of_all_items(clients)
        scores: Array = self.Z[clients].astype(np.float64) @ self.X.T.astype(np.float64)
        return scores


@dataclass(frozen=True)
class Fallback:
    """What is predicted where a client or an item has no training rating: the client's mean, else everybody's."""

    client_mean: Array
    """standard units; the global mean for a client without training ratings"""
    known_client: NDArray[np.bool_]
    known_item: NDArray[np.bool_]
    mean: float

    @classmethod
    def of(
        cls,
        training: Ratings,
        config: Config | None = None,
        mean: float | None = None,
        known_item: NDArray[np.bool_] | None = None,
    ) -> Fallback:
        """The fallback that a training set leaves one with; there are models that know something of every item.

        ``mean`` and ``known_item`` are given where these ratings are a shard, and there are others.
        """
        values = training.standard_values
        counts = np.diff(training.indptr)
        sums = np.bincount(training.client_of_rating, weights=values, minlength=training.clients)
        if mean is None:
            mean = float(values.mean()) if len(values) else 3.0
        client_mean = np.where(counts > 0, sums / np.maximum(counts, 1), mean)
        known_item = training.item_counts() > 0 if known_item is None else known_item
        if config is not None and config.model.PREDICTS_COLD_ITEMS:
            known_item[:] = True
        return cls(client_mean, counts > 0, known_item, mean)

    def cold(self, clients: NDArray[Any], items: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the pairs the model knows too little about."""
        cold: NDArray[np.bool_] = ~(self.known_client[clients] & self.known_item[items])
        return cold


@dataclass(frozen=True)
class Scores:
    """How far predictions are from test ratings."""

    mae: float
    rmse: float
    nmse: float
    """Σe² / Σr². Paper: Section "Evaluation Metrics" """
    ratings: int
    cold: int
    """of these, how many had a client or an item without training ratings and got the fallback's prediction"""
    unclipped: float
    """RMSE in standard units before clipping to the scale: clipping would hide a model that blows up"""

    def figures(self) -> dict[str, Any]:
        """What a metrics line holds of them."""
        figures = asdict(self)
        del figures["unclipped"]
        return figures


@dataclass(frozen=True)
class ErrorSums:
    """What errors on test ratings add up to."""

    absolute: float = 0.0
    squared: float = 0.0
    energy: float = 0.0
    """Σr²"""
    strayed: float = 0.0
    """squared errors in standard units before clipping"""
    ratings: int = 0
    cold: int = 0

    @classmethod
    def together(cls, parts: Iterable[ErrorSums]) -> ErrorSums:
        """The sums over several sets, added in their order."""
        return cls(*(sum(values) for values in zip(*(astuple(part) for part in parts), strict=True)))

    def scores(self) -> Scores:
        """MAE, RMSE and NMSE."""
        n = max(self.ratings, 1)
        nmse = self.squared / self.energy if self.energy > 0 else float("nan")
        rmse, unclipped = float(np.sqrt(self.squared / n)), float(np.sqrt(self.strayed / n))
        return Scores(self.absolute / n, rmse, nmse, self.ratings, self.cold, unclipped)


@dataclass(frozen=True)
class Block:
    """Some test ratings and their predictions."""

    clients: NDArray[Any]
    items: NDArray[Any]
    truth: Array
    """on the data's scale"""
    predicted: Array
    """on the data's scale, clipped to it"""
    strayed: Array
    """prediction minus truth in standard units, not clipped"""
    cold: NDArray[np.bool_]


def blocks(test: Ratings, predict: Predict, fallback: Fallback) -> Iterator[Block]:
    """All test ratings with their predictions, a block at a time."""
    scale = test.scale
    for first in range(0, len(test), _BLOCK):
        places = np.arange(first, min(first + _BLOCK, len(test)))
        clients = np.searchsorted(test.indptr, places, side="right") - 1
        items = test.items[places].astype(np.int64)
        truth = scale.values(test.codes[places])
        cold = fallback.cold(clients, items)
        raw = np.where(cold, fallback.client_mean[clients], predict(clients, items))
        yield Block(clients, items, truth, scale.restore(raw), raw - scale.standardise(truth), cold)


def score(test: Ratings, predict: Predict, fallback: Fallback) -> Scores:
    """MAE, RMSE and NMSE over all test ratings; none is dropped."""
    return error_sums(test, predict, fallback).scores()


def error_sums(test: Ratings, predict: Predict, fallback: Fallback) -> ErrorSums:
    """The sums that scores are made of."""
    absolute = squared = energy = strayed = 0.0
    cold = 0
    for block in blocks(test, predict, fallback):
        e = block.predicted - block.truth
        absolute += float(np.abs(e).sum())
        squared += float(e @ e)
        energy += float(block.truth @ block.truth)
        strayed += float(block.strayed @ block.strayed)
        cold += int(block.cold.sum())
    return ErrorSums(absolute, squared, energy, strayed, len(test), cold)
