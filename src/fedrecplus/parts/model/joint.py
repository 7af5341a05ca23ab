"""Ratings and choices together: the tables of ``reconstruction`` and ``ials`` beside each other, T = [V | W].

Each table learns from what it is for: V from ratings, W from choices. They meet on the device. Its ridge regression for
ratings runs over public columns, W and V, since what people choose also says how they rate; and, where federated
validation finds that it helps, over components of a kernel of all of these. Lists rank by the choice score u·w_i plus a
weight times the predicted rating. An item has one Σw for both tables.

Ours: V is trained without W's columns. With them, in every round, the error was larger and a round took twice as long.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import (
    Array,
    Items,
    add_to_diagonal,
    in_numpy,
    like,
    namespace,
    product,
    remember_equal,
    remember_last,
    rows_of,
)
from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.model import Changes, HeadChoice, Trained, fitted_columns, ials, reconstruction
from fedrecplus.parts.model._kernel_components import kernel_components
from fedrecplus.parts.model._public import public_columns, public_features
from fedrecplus.parts.model.ials import round_equations
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.settings import Annotated, number, text

_PRIORS = {"user_mean": (0.0, 0.85, 1.7), "public_scale": (0.05, 0.18)}
_RIDGES = {"noise": (1.2, 2.2, 4.0), "bias_scale": (0.5, 1.0, 1.5)}
_SCALES = {"interaction_scale": (0.5,)}
_SMOOTHNESS = {"kernel_scale": (0.3, 0.55)}
_STRUCTURES = {"structure": ("whole", "popular"), "popularity_weight": (0.0, 0.3, 1.0)}
_MIXTURES = {"rating_weight": (0.0, 0.06, 0.2)}
"""values of settings that validation chooses from, in every combination, whatever the config says"""
_POPULARITY_ALONE: Changes = {"structure": "popular", "popularity_weight": 1000.0}
"""for lists where nothing but popularity can be known; of items with a thousand ratings each it says little even so"""
_SURELY = 3.0
"""standard errors by which choices must say less of ratings: at one or two, small sets took that by chance"""


class Settings(ials.Settings):
    """Options of the model: those of both tables."""

    factors: Annotated[int, number(1, 4096, "d, columns of V")] = 32
    user_mean: Annotated[float, number(-100, 100, "prior mean of a person's first factor; of the others it is 0")] = 1.7
    user_step: Annotated[
        Literal["all", "rated"],
        text("rows that an upload's weights are solved over: rated alone is more accurate, and gives the set away"),
    ] = "rated"
    init_scale: Annotated[float, number(0, 1e3, "standard deviation of V's start values")] = 0.05
    curvature: Annotated[float, number(0.01, 100, "E[w²] of a factor's weight in the M-step; less where clipped")] = 1.0
    row_variance: Annotated[float, number(0, 100, "share of a row's own variance that adds to the ridge")] = 1.0
    kernel_scale: Annotated[
        float, number(0, 1e3, "prior sd of a curve over all item columns that predictions add to straight lines")
    ] = 0.0
    choice_prior: ClassVar[float] = 0.6
    """η, the prior mean of a person's weights of V moves by η Σ(V_j − mean)/√n over rated items"""


J = TypeVar("J", bound=Settings)


class Joint(ials.Ials[J]):
    """r̂ = b_i + x_i·w_u over both tables, and lists by u·w_i."""

    @functools.cached_property
    def rating_model(self) -> reconstruction.Reconstruction:
        """What trains V."""
        names = {field.name for field in msgspec.structs.fields(reconstruction.Settings)}
        own = {name: value for name, value in self.values.items() if name in names - {"popularity_weight"}}
        return reconstruction.Reconstruction(reconstruction.Settings(**own))

    def tree(self) -> dict[str, Leaf]:
        """V and W, and W's statistic."""
        return {**self.rating_model.tree(), **super().tree()}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """T before training: noise."""
        V = self.rating_model.start_items(seed, items, public)
        return np.hstack([V, super().start_items(seed, items, public)])

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """The gradients of both tables, and the statistic of ``ials``."""
        public, xp = broadcast.public, namespace(broadcast.V)
        rating_gradient = self.rating_model.expected_gradient(device, rows, fitted_columns(self, broadcast), public)
        choice_gradient, statistic = self.choice_gradient(rows, round_equations(self, broadcast), public)
        return Trained(device.U, xp.concat([rating_gradient, choice_gradient], axis=-1), statistic)

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """Both servers' halves, each of its own columns."""
        k = self.settings.factors
        ratings, choices = (replace(sums, total=total) for total in (sums.total[:, :k], sums.total[:, k:]))
        V_step = self.rating_model.update_items(ratings, V[:, :k], public)
        return np.hstack([V_step, super().update_items(choices, V[:, k:], public)])

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (b_i, constant, popularity, average, content, components of their kernel, scaled W_i, V_i)."""
        k, settings = self.settings.factors, self.settings
        columns = [like(public_columns(public, settings), V), settings.interaction_scale * V[:, k:], V[:, :k]]
        if settings.kernel_scale > 0.0:
            columns.insert(1, settings.kernel_scale * like(components_of(in_numpy(V), k, public), V))
        X: NDArray[Any] = namespace(V).concat(columns, axis=1)
        return X

    def choice_columns(self, columns: int) -> slice:
        """W's, which V's come after."""
        return super().choice_columns(columns - self.settings.factors)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The ridge regression of ``reconstruction``, with W's columns among the public ones and a prior of choices."""
        k, prior = self.settings.factors, self.prior_from_choices(X, items, public)
        x = rows_of(X, items)
        w, _ = self.rating_model.posterior(x, items, ratings - product(x[..., -k:], prior), public)
        w[..., -k:] += prior
        return w

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """What rating k adds by its value, and by being there: the prior of choices is a sum over rated items."""
        k, x = self.settings.factors, rows_of(X, items)
        shares = self.rating_model.weight_shares(X, items, ratings, public)
        prior = self.settings.choice_prior * (x[:, -k:] - mean_row(X, k, public)) / np.sqrt(max(len(items), 1))
        ridge, _ = self.rating_model.ridge_and_prior(x.shape[1] - 1, items, np.ones(len(items)), public)
        gram = x[:, 1:].T @ x[:, 1:]
        shares[:, 1:] -= np.linalg.solve(add_to_diagonal(gram.copy(), ridge), gram[:, -k:] @ prior.T).T
        shares[:, -k:] += prior
        return shares

    def prior_from_choices(self, X: Array, items: Items, public: PublicItems) -> Array:
        """η Σ_j (V_j − V̄)/√n over a person's n rated items, where V̄ is the mean row over all ratings.

        What people rate at all says something of how they rate. After: Koren 2008 (SVD++), with V for its implicit
        factors
        """
        xp, k = namespace(X), self.settings.factors
        n = xp.sum(xp.astype(items >= 0, X.dtype), axis=-1)[..., None]
        deviations = xp.sum(rows_of(X, items)[..., -k:], axis=-2) - n * mean_row(X, k, public)
        return self.settings.choice_prior * deviations / xp.clip(n, 1.0, None) ** 0.5  # type: ignore[no-any-return]

    def head_choices(self) -> tuple[HeadChoice, ...]:
        """Priors of a person's weights, and what lists are made of.

        In sparse data V's rows say little: there a prior mean of 0 for the first factor, and a freer bias, are better.
        """
        return (
            HeadChoice("errors", _combined(_PRIORS)),
            HeadChoice("errors", _combined(_SCALES), _SURELY),
            HeadChoice("errors", _combined(_RIDGES)),
            HeadChoice("errors", _combined(_SMOOTHNESS)),
            HeadChoice("lists", (*_combined(_STRUCTURES), _POPULARITY_ALONE)),
            HeadChoice("lists", _combined(_MIXTURES)),
        )

    def attacker(self) -> OfModel:
        """What an attacker knows of the weights behind V's columns: all that it knows of ``reconstruction``."""
        return self.rating_model.attacker()

    def solved_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """The columns that an upload's weights are solved over: W's are not among them."""
        return self.rating_model.item_columns(V[:, : self.settings.factors], public)

    def gradient_rows(self, delta: Array, items: Items, used: Array, broadcast: Broadcast) -> Array:
        """e_i·w_V, from V's columns of an upload."""
        k = self.settings.factors
        rating_columns = replace(broadcast, V=broadcast.V[:, :k])
        return self.rating_model.gradient_rows(delta[:, :k], items, used, rating_columns)

    def ridge_and_prior(self, size: int, items: Items, used: Array, public: PublicItems) -> tuple[Array, Array]:
        """See ``reconstruction``."""
        return self.rating_model.ridge_and_prior(size, items, used, public)


def _combined(values: Mapping[str, tuple[Any, ...]]) -> tuple[Changes, ...]:
    """No change, and every combination of values."""
    return ({}, *(dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())))


@remember_equal
def components_of(table: NDArray[Any], factors: int, public: PublicItems) -> Array:
    """Those of the kernel over public columns, choices and ratings. Rounds of another table leave these as they are."""
    return kernel_components([public_features(public), table[:, factors:], table[:, :factors]], public.popularity)


@remember_last
def mean_row(X: NDArray[Any], factors: int, public: PublicItems) -> NDArray[Any]:
    """V̄, in double precision first."""
    xp, q = namespace(X), public.popularity / max(public.popularity.sum(), 1)
    V = xp.astype(X[:, -factors:], xp.float64)
    mean: NDArray[Any] = xp.astype(like(q, V) @ V, X.dtype)
    return mean
