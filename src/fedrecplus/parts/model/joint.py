"""Ratings and choices together: the tables of ``reconstruction`` and ``ials`` beside each other, T = [V | W].

Each table learns from what it is for: V from ratings, W from choices. They meet on the device. Its ridge regression for
ratings runs over public columns, W and V, since what people choose also says how they rate. Lists rank by the
choice score u·w_i plus a weight times the predicted rating. An item has one Σw for both tables.

Ours: V is trained without W's columns. With them, in every round, the error was larger and a round took twice as long.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.model import ials, reconstruction
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.settings import Annotated, number, text

Array = NDArray[np.float64]
Items = NDArray[np.int64]
PREDICTS_COLD_ITEMS = True
CHOICES = True
"""it learns from what people chose, too"""


class Settings(ials.Settings):
    """Options of the model: those of both tables."""

    factors: Annotated[int, number(1, 4096, "d, columns of V")] = 32
    user_mean: Annotated[float, number(-100, 100, "prior mean of a person's first factor; of the others it is 0")] = 1.7
    solve_over: Annotated[
        Literal["all", "rated"],
        text("rows that an upload's weights are solved over: rated alone is more accurate, and gives the set away"),
    ] = "rated"
    init_scale: Annotated[float, number(0, 1e3, "standard deviation of V's start values")] = 0.05
    choice_prior: Annotated[
        float,
        number(0, 100, "η, the prior mean of a person's weights of V moves by η Σ(V_j − mean)/√n over rated items"),
    ] = 0.6


@functools.lru_cache(maxsize=16)
def of_ratings(settings: Settings) -> reconstruction.Settings:
    """The options of V."""
    return reconstruction.Settings(
        noise=settings.noise,
        item_prior=settings.item_prior,
        bias_scale=settings.bias_scale,
        public_scale=settings.public_scale,
        factors=settings.factors,
        user_mean=settings.user_mean,
        solve_over=settings.solve_over,
        init_scale=settings.init_scale,
    )


def tables(settings: Settings) -> dict[str, int]:
    """The shared tables and their columns."""
    return {**reconstruction.tables(of_ratings(settings)), **ials.tables(settings)}


statistic_size = ials.statistic_size
user_columns = ials.user_columns
start_users = ials.start_users
confidences = ials.confidences
person_factors = ials.person_factors
choosing = ials.choosing


def start_items(seed: int, items: int, settings: Settings, public: PublicItems) -> Array:
    """T before training: noise."""
    V = reconstruction.start_items(seed, items, of_ratings(settings), public)
    return np.hstack([V, ials.start_items(seed, items, settings, public)])


def new_items(T: NDArray[Any], public: PublicItems, settings: Settings) -> Array:
    """Rows for items that enter a trained model: what their public features predict."""
    return reconstruction.new_items(T, public, of_ratings(settings))


def local_training(device: Device, rows: Rows, broadcast: Broadcast, settings: Settings) -> tuple[Array, Array, Array]:
    """T_i plus the gradients of both tables, and the statistic of ``ials``."""
    T, public, k = broadcast.V, broadcast.public, settings.factors
    of_V = reconstruction.expected_gradient(rows, T[:, :k], public, of_ratings(settings))
    of_W, statistic = ials.choice_gradient(rows, T[:, k:], public, settings)
    return device.U, T[rows.items].astype(np.float64) + np.hstack([of_V, of_W]), statistic


def update_items(sums: Sums, T: NDArray[Any], public: PublicItems, settings: Settings) -> Array:
    """Both servers' halves, each of its own columns."""
    k = settings.factors
    of_V, of_W = (
        Sums(total, sums.weights, sums.overall, sums.clients, statistic=sums.statistic)
        for total in (sums.total[:, :k], sums.total[:, k:])
    )
    V_step = reconstruction.update_items(of_V, T[:, :k], public, of_ratings(settings))
    return np.hstack([V_step, ials.update_items(of_W, T[:, k:], public, settings)])


def predict(items: Items, device: Device, broadcast: Broadcast, settings: Settings, steps: int = 0) -> Array:
    """The client's own predictions of ratings; ``steps`` add nothing to a solution."""
    X = item_columns(broadcast.V, broadcast.public, settings).astype(np.float64)
    ratings: Array = X[items] @ fold_in(X, device.items, device.ratings, settings, broadcast.public)
    return ratings


def user_weights(U: Array, X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """The weights that predicted ratings use, which never leave the device."""
    return fold_in(X, items, ratings, settings, public)


def fold_in(X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """The ridge regression of ``reconstruction``, with W's columns among the public ones and a prior from choices."""
    V, prior = X[:, -settings.factors :], prior_from_choices(X, items, settings, public)
    w = reconstruction.fold_in(X, items, ratings - V[items] @ prior, of_ratings(settings), public)
    w[-settings.factors :] += prior
    return w


def prior_from_choices(X: Array, items: Items, settings: Settings, public: PublicItems) -> Array:
    """η Σ_j (V_j − V̄)/√n over a person's n rated items, where V̄ is the mean row over all ratings.

    What people rate at all says something of how they rate. After: Koren 2008 (SVD++), with V for its implicit factors
    """
    V = X[items, -settings.factors :]
    return np.asarray(
        settings.choice_prior * (V - mean_row(X, settings, public)).sum(axis=0) / max(len(items), 1) ** 0.5
    )


def mean_row(X: NDArray[Any], settings: Settings, public: PublicItems) -> Array:
    """V̄."""
    q = public.popularity / max(public.popularity.sum(), 1)
    return np.asarray(q @ X[:, -settings.factors :].astype(np.float64))


def list_weights(w: Array, X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """Weights z over X such that X·z = u·w_i + rating weight × predicted rating."""
    return ials.list_weights(w, X, items, ratings, settings, public, after=settings.factors)


def item_columns(T: NDArray[Any], public: PublicItems, settings: Settings) -> NDArray[Any]:
    """X = (b_i, constant, popularity, average, content, scaled W_i, V_i)."""
    k = settings.factors
    return np.hstack([ials.item_columns(T[:, k:], public, settings), T[:, :k]])


def attacker(settings: Settings) -> OfModel:
    """What an attacker knows of the weights behind V's columns: all that it knows of ``reconstruction``."""
    return reconstruction.attacker(of_ratings(settings))


def solved_columns(T: NDArray[Any], public: PublicItems, settings: Settings) -> NDArray[Any]:
    """The columns that an upload's weights are solved over: W's are not among them."""
    return reconstruction.item_columns(T[:, : settings.factors], public, of_ratings(settings))


def gradient_rows(delta: Array, items: Items, used: Array, broadcast: Broadcast, settings: Settings) -> Array:
    """e_i·w_V, from V's columns of an upload."""
    k = settings.factors
    of_V = replace(broadcast, V=broadcast.V[:, :k])
    return reconstruction.gradient_rows(delta[:, :k], items, used, of_V, of_ratings(settings))


def ridge_and_prior(
    size: int, items: Items, used: Array, settings: Settings, public: PublicItems
) -> tuple[Array, Array]:
    """See ``reconstruction``."""
    return reconstruction.ridge_and_prior(size, items, used, of_ratings(settings), public)
