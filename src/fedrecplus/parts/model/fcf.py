"""Federated collaborative filtering of implicit feedback, as published: every client uploads a row of every item.

J = Σ_ui c_ui (p_ui − x_u·y_i)² + λ(Σ‖x_u‖² + Σ‖y_i‖²), with p_ui = 1 for items that a person interacted with and 0 for
all others, and confidence c_ui = 1 + α p_ui. A device solves for x_u exactly and uploads, for all items, the rows
f(u, i) = c_ui (p_ui − x_u·y_i) x_u: the list of rows tells nothing, the rows do. The server takes Adam's step on J's
gradient.

It ranks, and predicts no ratings: what stands for them is the item's damped mean plus the person's damped deviation.

After: Ammad et al. 2019 (FCF)
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, add_to_diagonal, namespace, outer, remember_last, rows_of, solve, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model, Trained, start_noise
from fedrecplus.parts.model._clicks import BEFORE, fallback_shares, fallback_weights, with_means
from fedrecplus.parts.recency import VALIDATED, RecencyDecay
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.settings import Annotated, Settings as _Settings, number


class Settings(_Settings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "K, columns of Y")] = 25
    confidence: ClassVar[float] = 4.0
    """α, confidence of an interaction beyond that of none, as published"""
    regularisation: Annotated[float, number(1e-9, 1e9, "λ, L2 regularisation of x and of the rows of Y")] = 30.0
    recency: RecencyDecay = VALIDATED
    init_scale: Annotated[float, number(1e-9, 1e3, "standard deviation of Y's start values")] = 0.1


class SharedGram(NamedTuple):
    """What all people's factors come from."""

    Y: NDArray[Any]
    gram: NDArray[Any]
    """the part of a person's normal equations that is the same for all"""


class Fcf(Model[Settings]):
    """s_ui = x_u·y_i."""

    CHOICES = True
    ALL_ITEMS = True
    RATINGS_BY = "means"

    def tree(self) -> dict[str, Leaf]:
        """Y."""
        return {"Y": Leaf.table(self.settings.factors)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """Y before training: noise."""
        return self.settings.init_scale * start_noise(seed, "start-Y", items, self.settings.factors)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """f(u, i) = c_ui (p_ui − x_u·y_i) x_u, for all items."""
        shared = round_gram(self, broadcast)
        x, chosen = self.person_factors(shared, device.items), namespace(shared.Y).astype(rows.rated, shared.Y.dtype)
        e = (1.0 + self.settings.confidence * chosen) * (chosen - x @ shared.Y.T)
        return Trained(device.U, outer(e, x))

    def person_factors(self, shared: SharedGram, items: Items, recency: Array | None = None) -> Array:
        """x of (Yᵀ C Y + λI) x = Yᵀ C p, with YᵀY over all items and what interactions add to it.

        In lists both are weighed by ``recency``.
        """
        xp, y, alpha = namespace(shared.Y), rows_of(shared.Y, items), self.settings.confidence
        weighted = y if recency is None else recency[..., None] * y
        gram = shared.gram + alpha * (xp.matrix_transpose(weighted) @ y)
        x, _ = solve(gram, (1.0 + alpha) * xp.sum(weighted, axis=-2))
        return x

    def shared_gram(self, Y: NDArray[Any]) -> SharedGram:
        """YᵀY + λI, in double precision first."""
        xp = namespace(Y)
        wide = xp.astype(Y, xp.float64)
        gram = add_to_diagonal(wide.T @ wide, self.settings.regularisation)
        return SharedGram(Y, xp.astype(gram, Y.dtype))

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """−∂J/∂y_i = 2 Σ_u f(u, i) − 2λ y_i, for a server optimizer to step by."""
        mean_weight = sums.overall / sums.clients if sums.clients else 0.0
        return np.asarray(2.0 * sums.total - 2.0 * self.settings.regularisation * mean_weight * V)

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (damped mean rating, 1, y_i)."""
        return with_means(V, public)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The fallback's weights of the item's mean and of the constant: 1 and the person's damped deviation."""
        return fallback_weights(X, items, ratings)

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A rating's part of the damped deviation."""
        return fallback_shares(X, items, ratings)

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """x over Y's columns, so that X·z = x·y_i."""
        x = self.person_factors(list_gram(self, X), items, recency)
        z = zeros(w.shape, X)
        z[..., BEFORE:] = x
        return z

    def list_weight_shares(
        self, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """What choice k adds to x. After: Hu, Koren and Volinsky 2008, section 5"""
        shared, y, alpha = list_gram(self, X), X[items, BEFORE:], self.settings.confidence
        shares, weighted = np.zeros((len(items), X.shape[1])), y if recency is None else recency[:, None] * y
        shares[:, BEFORE:] = (1.0 + alpha) * np.linalg.solve(shared.gram + alpha * weighted.T @ y, weighted.T).T
        return shares


@remember_last
def round_gram(model: Fcf, broadcast: Broadcast) -> SharedGram:
    """Of a round's Y."""
    return model.shared_gram(broadcast.V)


@remember_last
def list_gram(model: Fcf, X: NDArray[Any]) -> SharedGram:
    """Of Y as it stands in X."""
    return model.shared_gram(X[:, BEFORE:])
