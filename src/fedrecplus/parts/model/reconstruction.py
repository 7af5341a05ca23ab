"""Federated reconstruction: a latent factor model whose user factors are integrated out on the device, every round.

r_ui = b_i + x_i·w_u + noise. The baseline b_i is the item's damped mean rating. x_i are columns that everybody knows: a
constant, popularity, average, the catalogue's features, and V_i, the only ones that are learnt. The weights w_u are
normal a priori, so a device knows their posterior in closed form, keeps nothing between rounds, and uploads the
expected gradient of its rows of V: the E-step of expectation maximisation. The server's M-step shrinks a row of few
ratings towards what the item's public features predict.

After: Singhal et al. 2021 (federated reconstruction, with gradient steps), Agarwal and Chen 2009 (regression-based
latent factors), Tipping and Bishop 1999 (EM with the user side integrated out)
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.model import Model, Trained
from fedrecplus.parts.model._public import (
    POPULARITY_COLUMN,
    PublicSettings,
    public_columns,
    public_regression,
    ridge_regression,
    rows_from_features,
)
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.randomness import normal, subkey
from fedrecplus.settings import Annotated, number, text

Array = NDArray[np.float64]
Items = NDArray[np.int64]
POPULARITY = POPULARITY_COLUMN
"""the column of X that has the popularity of items"""


class Settings(PublicSettings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of V")] = 32
    user_mean: Annotated[float, number(-100, 100, "prior mean of a person's first factor; of the others it is 0")] = 1.7
    solve_over: Annotated[
        Literal["all", "rated"],
        text("rows that an upload's weights are solved over: rated alone is more accurate, and gives the set away"),
    ] = "rated"
    init_scale: Annotated[float, number(0, 1e3, "standard deviation of V's start values")] = 0.05
    curvature: Annotated[float, number(0.01, 100, "E[w²] of a factor's weight in the M-step; less where clipped")] = 1.0
    row_variance: Annotated[float, number(0, 100, "share of a row's own variance that adds to the ridge")] = 1.0
    popularity_weight: Annotated[
        float, number(0, 1e3, "of the popularity column beside the predicted rating, in the score that lists rank by")
    ] = 0.0


class Reconstruction(Model[Settings]):
    """r̂ = b_i + x_i·w_u, with w_u solved for in every round."""

    PREDICTS_COLD_ITEMS = True

    def tables(self) -> dict[str, int]:
        """V."""
        return {"V": self.settings.factors}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """V before training: noise."""
        factors = self.settings.factors
        cells = np.arange(items * factors, dtype=np.uint64).reshape(items, factors)
        return self.settings.init_scale * normal(subkey(seed, "start-V"), cells)

    def new_items(self, V: NDArray[Any], public: PublicItems, seed: int) -> Array:
        """Rows for items that enter a trained model: what their public features predict."""
        return rows_from_features(V, public, self.settings)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """V_i plus its expected gradient."""
        gradient = self.expected_gradient(rows, broadcast.V, broadcast.public)
        return Trained(device.U, broadcast.V[rows.items].astype(np.float64) + gradient)

    def expected_gradient(self, rows: Rows, V: NDArray[Any], public: PublicItems) -> Array:
        """e_i w_V − S_V x_i, with the covariance S of weights solved over that row."""
        X = self.item_columns(V, public).astype(np.float64)
        used = rows.rated | (self.settings.solve_over == "all")
        w, S = self.posterior(X, rows.items[used], rows.ratings[used], public)
        x, k = X[rows.items], X.shape[1] - self.settings.factors
        return np.asarray(np.outer(rows.ratings - x @ w, w[k:]) - used[:, None] * (x @ S[:, k:]))

    def posterior(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> tuple[Array, Array]:
        """Mean and covariance of a person's weights, given ratings of some items.

        The baseline's own weight is 1 and certain. A row of V is itself known no better than σ²/(n_i + prior strength),
        which adds to the ridge of its weights.
        """
        ridge, prior = self.ridge_and_prior(X.shape[1] - 1, items, np.ones(len(items)), public)
        return ridge_regression(X, items, ratings, ridge, prior, self.settings.noise * public.noise)

    def ridge_and_prior(self, size: int, items: Items, used: Array, public: PublicItems) -> tuple[Array, Array]:
        """Of each weight but the baseline's: its ridge, for rows that were used (1) or not (0), and its prior mean."""
        settings = self.settings
        prior, ridge = np.zeros(size), np.full((*used.shape[:-1], size), settings.noise * public.noise)
        prior[-settings.factors] = settings.user_mean
        ridge[..., -settings.factors :] += np.asarray(used @ self.item_variance(public)[items])[..., None]
        return ridge, prior

    def item_variance(self, public: PublicItems) -> Array:
        """σ²/(n_i + prior strength): how little is known of a row of V."""
        noise = self.settings.row_variance * self.settings.noise * public.noise
        return np.asarray(noise / (public.popularity + self.settings.item_prior))

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """(Σ w Δ_i − K w̄ (V_i − V̂_i))/(Σ w E[w_V²] + K w̄): the M-step, with E[w_V²] as it is a priori.

        K pseudo-ratings pull a row to V̂_i, what the item's public features predict. Where sums come with noise for
        differential privacy, K grows by the noise's variance over that of the ratings in the sum, σ² Σ w E[w_V²]: the
        posterior mean of a row whose measurement is that much worse.
        """
        settings = self.settings
        curvature = np.full(settings.factors, settings.curvature)
        curvature[0] += settings.user_mean**2
        weights = sums.weights[:, None] * curvature
        strength = settings.item_prior * (sums.overall / sums.clients if sums.clients else 0.0)
        if sums.noise > 0.0:
            strength = strength * (1.0 + sums.noise**2 / (settings.noise * public.noise * np.maximum(weights, 1.0)))
        features, regression = public_regression(public, settings)
        pull = strength * (V - features @ (regression @ V.astype(np.float64)))
        return np.asarray((sums.total - pull) / np.maximum(weights + strength, 1e-12))

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (b_i, constant, popularity, average, content, V_i)."""
        return np.hstack([public_columns(public, self.settings).astype(V.dtype), V])

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The posterior mean: a ridge regression over the rated rows alone."""
        return self.posterior(X, items, ratings, public)[0]

    @property
    def scores_lists(self) -> bool:
        """Where popularity has a say."""
        return self.settings.popularity_weight > 0.0

    def list_weights(self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Weights z over X such that X·z = predicted rating + popularity weight × popularity.

        Ours: under a budget noisy counts are released in any case, so lists that lean on them cost nothing.
        """
        z = w.copy()
        z[POPULARITY] += self.settings.popularity_weight
        return z

    def attacker(self) -> OfModel:
        """What an attacker knows of w: the baseline's weight is 1, and V's columns show theirs."""
        return OfModel(slice(-self.settings.factors, None), {0: 1.0}, "exactly", self.settings.solve_over)

    def gradient_rows(self, delta: Array, items: Items, used: Array, broadcast: Broadcast) -> Array:
        """Δ + S_V x_i = e_i·w_V: everybody can compute the covariance S who knows which rows it was solved over."""
        X = self.item_columns(broadcast.V, broadcast.public)[items]
        ridge, _ = self.ridge_and_prior(X.shape[1] - 1, items, used, broadcast.public)
        inverse = np.linalg.inv((X[:, 1:] * used[:, None]).T @ X[:, 1:] + np.diag(ridge))
        S = self.settings.noise * broadcast.public.noise * inverse[:, -self.settings.factors :]
        rows: Array = delta + used[:, None] * (X[:, 1:] @ S)
        return rows
