"""Biases of people and items alone: what nobody should do worse than, under any protection that the others have.

r̂ = μ + b_i + b_u. b_i is the one shared column, b_u stays on the device. A round is an alternation of the ridge
regression: the device solves for b_u given the items', and uploads its rows' residuals; the server solves for b_i. Rows
start at the items' public damped means, so that a row which is never summed still has those. Lists are what is
popular.

After: Koren 2010 (baseline estimates)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, like, namespace, outer, product, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.model import Model, Trained, prediction_columns
from fedrecplus.parts.model._clicks import fallback_shares, fallback_weights
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.settings import Settings as _Settings

_BASELINE, _, _POPULARITY = range(3)
"""columns of X"""


class Settings(_Settings):
    """Options of the model."""

    person_ridge: ClassVar[float] = 5.0
    """pseudo-ratings that a person's bias is shrunk by: what the default falls back on is not tuned"""
    item_ridge: ClassVar[float] = 10.0
    """pseudo-ratings that an item's bias is shrunk by"""


class Biases(Model[Settings]):
    """r̂ = μ + b_i + b_u."""

    CHOICES = True
    POPULAR_LISTS = True

    def tree(self) -> dict[str, Leaf]:
        """b."""
        return {"b": Leaf.table(1)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """Deviations of the items' public means."""
        return np.asarray(public.averages() - public.mean)[:, None]

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """e = r − r̂ of each row, with b_u solved for over the rated rows."""
        X = prediction_columns(self, broadcast)
        w = self.fold_in(X, device.items, device.ratings, broadcast.public)
        e = rows.ratings - product(rows_of(X, rows.items), w)
        return Trained(device.U, outer(e, namespace(X).ones_like(e[..., :1])))

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """(Σ w e − λ w̄ b_i)/(Σ w + λ w̄): to where b_i solves its ridge regression; zero where nothing was summed."""
        weights = sums.weights[:, None]
        ridge = self.settings.item_ridge * (sums.overall / sums.clients if sums.clients else 0.0)
        step = (sums.total - ridge * V) / np.maximum(weights + ridge, 1e-12)
        return np.asarray(np.where(weights > 0, step, 0.0))

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (μ + b_i, 1, log popularity)."""
        xp, popularity = namespace(V), like(np.log1p(public.popularity)[:, None], V)
        columns: NDArray[Any] = xp.concat([V + public.mean, xp.ones_like(V), popularity], axis=1)
        return columns

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """1 for the item, and the person's bias: the damped mean of deviations."""
        return fallback_weights(X, items, ratings, self.settings.person_ridge)

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A rating's part of the person's bias."""
        return fallback_shares(X, items, ratings, self.settings.person_ridge)

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Popularity, the same for everybody."""
        z = zeros(w.shape, X)
        z[..., _POPULARITY] = 1.0
        return z

    def attacker(self) -> OfModel:
        """A row is its residual: the weight of the item's bias is 1."""
        return OfModel(slice(0, 1), {_BASELINE: 1.0, _POPULARITY: 0.0}, "exactly", "rated")

    def ridge_and_prior(self, size: int, items: Items, used: Array, public: PublicItems) -> tuple[Array, Array]:
        """Of the person's bias."""
        return np.full((*used.shape[:-1], size), self.settings.person_ridge), np.zeros(size)
