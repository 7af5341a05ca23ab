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

from fedrecplus.arrays import Array, Items, like, namespace, product, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.model import Model, Trained, fitted_columns, start_noise
from fedrecplus.parts.model._public import (
    POPULARITY_COLUMN,
    PublicSettings,
    public_regression,
    regression_shares,
    ridge_regression,
    rows_from_features,
    with_public_columns,
)
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.settings import Annotated, number, text

POPULARITY = POPULARITY_COLUMN
"""the column of X that has the popularity of items"""


class Settings(PublicSettings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of V")] = 32
    user_mean: Annotated[float, number(-100, 100, "prior mean of a person's first factor; of the others it is 0")] = 1.7
    user_step: Annotated[
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

    def tree(self) -> dict[str, Leaf]:
        """V."""
        return {"V": Leaf.table(self.settings.factors)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """V before training: noise."""
        return self.settings.init_scale * start_noise(seed, "start-V", items, self.settings.factors)

    def new_items(self, V: NDArray[Any], public: PublicItems, seed: int) -> Array:
        """Rows for items that enter a trained model: what their public features predict."""
        return rows_from_features(V, public, self.settings)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """The expected gradient of the rows of V."""
        X = fitted_columns(self, broadcast)
        return Trained(device.U, self.expected_gradient(device, rows, X, broadcast.public))

    def expected_gradient(self, device: Device, rows: Rows, X: Array, public: PublicItems) -> Array:
        """e_i w_V − S_V x_i, with the covariance S of weights solved over that row."""
        xp, factors, over_all = namespace(X), self.settings.factors, self.settings.user_step == "all"
        items, ratings = (rows.items, rows.ratings) if over_all else (device.items, device.ratings)
        solved = rows_of(X, items)
        w, S = self.posterior(solved, items, ratings, public, factors)
        x = solved if items is rows.items else rows_of(X, rows.items)
        e = rows.ratings - product(x, w)
        if not over_all:
            x[~rows.rated] = 0.0
        x[..., 0] = e  # in place of the baseline, so that one product gives both terms
        return x @ xp.concat([w[..., None, -factors:], -S], axis=-2)  # type: ignore[no-any-return]

    def posterior(
        self, x: Array, items: Items, ratings: Array, public: PublicItems, columns: int = 0
    ) -> tuple[Array, Array]:
        """The mean of a person's weights, given ratings of items and their rows x of X, and the last columns of
        their covariance.

        The baseline's own weight is 1 and certain. A row of V is itself known no better than σ²/(n_i + prior strength),
        which adds to the ridge of its weights.
        """
        used = namespace(x).astype(items >= 0, x.dtype)
        ridge, prior = self.ridge_and_prior(x.shape[-1] - 1, items, used, public)
        w, covariance = ridge_regression(x, ratings, ridge, prior, columns)
        return w, self.settings.noise * public.noise * covariance

    def ridge_and_prior(self, size: int, items: Items, used: Array, public: PublicItems) -> tuple[Array, Array]:
        """Of each weight but the baseline's: its ridge, for rows that were used (1) or not (0), and its prior mean."""
        xp, factors = namespace(used), self.settings.factors
        variance = rows_of(like(self.item_variance(public), used)[:, None], items)[..., 0]
        ridge, prior = zeros((*used.shape[:-1], size), used), zeros((size,), used)
        ridge += self.settings.noise * public.noise
        ridge[..., -factors:] += xp.sum(used * variance, axis=-1)[..., None]
        prior[-factors] = self.settings.user_mean
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
        return with_public_columns(V, public, self.settings)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The posterior mean: a ridge regression over the rated rows alone."""
        return self.posterior(rows_of(X, items), items, ratings, public)[0]

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A⁻¹ x_k times how far rating k is from what the prior says."""
        x = rows_of(X, items)
        ridge, prior = self.ridge_and_prior(x.shape[1] - 1, items, np.ones(len(items)), public)
        return regression_shares(x, ratings - x[:, 0] - x[:, 1:] @ prior, ridge)

    @property
    def scores_lists(self) -> bool:
        """Where popularity has a say."""
        return self.settings.popularity_weight > 0.0

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Weights z over X such that X·z = predicted rating + popularity weight × popularity.

        Ours: under a budget noisy counts are released in any case, so lists that lean on them cost nothing.
        """
        popularity = zeros((X.shape[1],), X)
        popularity[POPULARITY] = self.settings.popularity_weight
        z: Array = w + popularity
        return z

    def list_weight_shares(
        self, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Those of the predicted rating: popularity is nobody's choice."""
        return self.weight_shares(X, items, ratings, public)

    def attacker(self) -> OfModel:
        """What an attacker knows of w: the baseline's weight is 1, and V's columns show theirs."""
        return OfModel(slice(-self.settings.factors, None), {0: 1.0}, "exactly", self.settings.user_step)

    def gradient_rows(self, delta: Array, items: Items, used: Array, broadcast: Broadcast) -> Array:
        """Δ + S_V x_i = e_i·w_V: everybody can compute the covariance S who knows which rows it was solved over."""
        X = self.item_columns(broadcast.V, broadcast.public)[items]
        ridge, _ = self.ridge_and_prior(X.shape[1] - 1, items, used, broadcast.public)
        inverse = np.linalg.inv((X[:, 1:] * used[:, None]).T @ X[:, 1:] + np.diag(ridge))
        S = self.settings.noise * broadcast.public.noise * inverse[:, -self.settings.factors :]
        rows: Array = delta + used[:, None] * (X[:, 1:] @ S)
        return rows
