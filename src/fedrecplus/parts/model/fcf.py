"""Federated collaborative filtering of implicit feedback, as published: every client uploads a row of every item.

J = Σ_ui c_ui (p_ui − x_u·y_i)² + λ(Σ‖x_u‖² + Σ‖y_i‖²), with p_ui = 1 for items that a person interacted with and 0 for
all others, and confidence c_ui = 1 + α p_ui. A device solves for x_u exactly and uploads, for all items, the rows
f(u, i) = c_ui (p_ui − x_u·y_i) x_u: the list of rows tells nothing, the rows do. The server takes Adam's step on J's
gradient.

It ranks, and predicts no ratings: what stands for them is the item's damped mean plus the person's damped deviation.

After: Ammad et al. 2019 (FCF)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model, Trained
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.randomness import normal, subkey
from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as _Settings

Array = NDArray[np.float64]
Items = NDArray[np.int64]
_BIAS_PRIOR = 5.0
"""pseudo-ratings that a person's deviation from items' means is shrunk by"""
_BEFORE = 2
"""columns of X before Y"""


class Settings(_Settings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "K, columns of Y")] = 25
    confidence: Annotated[float, number(1e-6, 1e6, "α, confidence of an interaction beyond that of none")] = 4.0
    regularisation: Annotated[float, number(1e-9, 1e9, "λ, L2 regularisation of x and of the rows of Y")] = 30.0
    init_scale: Annotated[float, number(1e-9, 1e3, "standard deviation of Y's start values")] = 0.1


class Fcf(Model[Settings]):
    """s_ui = x_u·y_i."""

    CHOICES = True
    ALL_ITEMS = True
    RATINGS_BY = "means"

    def tables(self) -> dict[str, int]:
        """Y."""
        return {"Y": self.settings.factors}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """Y before training: noise."""
        cells = np.arange(items * self.settings.factors, dtype=np.uint64).reshape(items, -1)
        return self.settings.init_scale * normal(subkey(seed, "start-Y"), cells)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """y_i plus f(u, i) = c_ui (p_ui − x_u·y_i) x_u."""
        Y = broadcast.V.astype(np.float64)
        x, own = self.person_factors(Y, device.items), Y[rows.items]
        confidence = 1.0 + self.settings.confidence * rows.rated
        return Trained(device.U, own + np.outer(confidence * (rows.rated - own @ x), x))

    def person_factors(self, Y: Array, items: Items) -> Array:
        """x of (Yᵀ C Y + λI) x = Yᵀ C p, with YᵀY over all items and what interactions add to it."""
        rows, alpha = Y[items], self.settings.confidence
        gram = Y.T @ Y + alpha * rows.T @ rows + self.settings.regularisation * np.eye(Y.shape[1])
        return np.asarray(np.linalg.solve(gram, (1.0 + alpha) * rows.sum(axis=0)))

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """−∂J/∂y_i = 2 Σ_u f(u, i) − 2λ y_i, for a server optimizer to step by."""
        mean_weight = sums.overall / sums.clients if sums.clients else 0.0
        return np.asarray(2.0 * sums.total - 2.0 * self.settings.regularisation * mean_weight * V)

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (damped mean rating, 1, y_i)."""
        return np.hstack([public.averages()[:, None].astype(V.dtype), np.ones((len(V), 1), dtype=V.dtype), V])

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The fallback's weights of the item's mean and of the constant: 1 and the person's damped deviation."""
        w = np.zeros(X.shape[1])
        w[:_BEFORE] = 1.0, (ratings - X[items, 0]).sum() / (len(items) + _BIAS_PRIOR)
        return w

    def list_weights(self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """x over Y's columns, so that X·z = x·y_i."""
        return np.append(np.zeros(_BEFORE), self.person_factors(X[:, _BEFORE:], items))
