"""Implicit alternating least squares in federation: learns from what people chose, not from how they rated it.

s_ui = u·w_i should be 1 for chosen items and, with the small weight a, 0 for all items. A device solves for its u
exactly, keeps nothing, and uploads (1 − s_ui)u for the items that it chose and the small matrix u uᵀ, which stands for
the a-term over all items: nothing is sampled and nothing is dense. No rating leaves the device. A single u uᵀ gives u
away, so the sums belong under secure aggregation. Ratings are predicted on the device alone, by a ridge regression of
its own ratings on public columns and W.

After: Hu, Koren, Volinsky 2008 (implicit feedback), Rendle et al. 2022 (iALS revisited), Ammad et al. 2019 (FCF)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, Rows
from fedrecplus.parts.model._public import PublicSettings, public_columns, ridge_regression
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.randomness import normal, subkey
from fedrecplus.settings import Annotated, number

Array = NDArray[np.float64]
Items = NDArray[np.int64]
PREDICTS_COLD_ITEMS = True
_TIE = 1e-9


class Settings(PublicSettings):
    """Options of the model."""

    interaction_factors: Annotated[int, number(1, 4096, "d, columns of W")] = 32
    from_rating: Annotated[
        float,
        number(1, 5, "ratings from here up, on the standard scale 1–5, are choices; or from the mean up, where lower"),
    ] = 3.0
    unobserved_weight: Annotated[float, number(1e-6, 1e3, "a, weight of s = 0 over all items")] = 0.3
    interaction_ridge: Annotated[float, number(1e-9, 1e9, "λ, ridge of u")] = 10.0
    interaction_item_ridge: Annotated[float, number(1e-9, 1e9, "λ_i, ridge of a row of W")] = 8.0
    curvature: Annotated[
        float, number(0, 1e3, "κ, how much more alike those are who chose an item than everybody: damps its steps")
    ] = 2.0
    popular_choices: Annotated[
        float, number(0, 1e6, "pseudo-choices of the average person, drawn by popularity, that u is shrunk to")
    ] = 1.0
    interaction_scale: Annotated[
        float, number(1e-6, 1e3, "prior sd of the weights of W's columns in predicted ratings")
    ] = 0.5
    rating_weight: Annotated[float, number(0, 1e3, "of the predicted rating in the score that lists rank by")] = 0.07
    interaction_init: Annotated[float, number(1e-9, 1e3, "standard deviation of W's start values")] = 0.1


def tables(settings: Settings) -> dict[str, int]:
    """The shared tables and their columns."""
    return {"W": settings.interaction_factors}


def statistic_size(settings: Settings) -> int:
    """Numbers of u uᵀ's upper triangle."""
    return settings.interaction_factors * (settings.interaction_factors + 1) // 2


def user_columns(settings: Settings) -> int:
    """Nothing is kept on the device between rounds."""
    return 0


def start_items(seed: int, items: int, settings: Settings, public: PublicItems) -> Array:
    """W before training: noise."""
    cells = np.arange(items * settings.interaction_factors, dtype=np.uint64).reshape(items, -1)
    return settings.interaction_init * normal(subkey(seed, "start-W"), cells)


def start_users(seed: int, clients: Items, settings: Settings, public: PublicItems) -> Array:
    """Nothing."""
    return np.zeros((len(clients), 0))


def local_training(device: Device, rows: Rows, broadcast: Broadcast, settings: Settings) -> tuple[Array, Array, Array]:
    """W_i plus its gradient, and u uᵀ."""
    gradient, statistic = choice_gradient(rows, broadcast.V, broadcast.public, settings)
    return device.U, broadcast.V[rows.items].astype(np.float64) + gradient, statistic


def choice_gradient(rows: Rows, W: NDArray[Any], public: PublicItems, settings: Settings) -> tuple[Array, Array]:
    """(1 − s_i)u for chosen items and 0 for the others, and u uᵀ as its upper triangle, row by row."""
    W = W.astype(np.float64)
    u = person_factors(W, rows.items[rows.rated], rows.ratings[rows.rated], settings, public)
    chosen = rows.rated & chosen_items(rows.ratings, settings, public)
    gradient = chosen[:, None] * np.outer(1.0 - W[rows.items] @ u, u)
    return gradient, np.outer(u, u)[np.triu_indices(len(u))]


def chosen_items(ratings: Array, settings: Settings, public: PublicItems) -> NDArray[np.bool_]:
    """Which ratings count as choices. Where everybody gave the same, all do."""
    return np.asarray(ratings >= min(settings.from_rating, public.mean) - _TIE)


def person_factors(W: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """u of (a WᵀW + Σ_chosen w wᵀ + k Σ_i q_i w wᵀ + λI) u = Σ_chosen w + k Σ_i q_i w.

    q is public popularity, a distribution. Ours: k pseudo-choices of the average person, so that who has chosen little
    gets what is popular.
    """
    gram, moment = everybody(W, public, settings)
    rows = W[items[chosen_items(ratings, settings, public)]]
    return np.asarray(np.linalg.solve(gram + rows.T @ rows, moment + rows.sum(axis=0)))


def everybody(W: Array, public: PublicItems, settings: Settings) -> tuple[Array, Array]:
    """The part of a person's normal equations that is the same for all, and public."""
    q = public.popularity / max(public.popularity.sum(), 1)
    gram = settings.unobserved_weight * W.T @ W + settings.popular_choices * (q[:, None] * W).T @ W
    return gram + settings.interaction_ridge * np.eye(W.shape[1]), settings.popular_choices * (q @ W)


def update_items(sums: Sums, W: NDArray[Any], public: PublicItems, settings: Settings) -> Array:
    """The gradient Σ(1 − s)u − a S w_i − λ_i w_i, divided by (a + κ n_i/n) S + λ_i I, where S = Σ u uᵀ.

    All items' matrices have S's eigenvectors, so one decomposition solves for all.
    """
    W = W.astype(np.float64)
    S = _symmetric(sums.statistic, W.shape[1])
    ridge = settings.interaction_item_ridge * (sums.overall / sums.clients if sums.clients else 0.0)
    gradient = sums.total - settings.unobserved_weight * W @ S - ridge * W
    share = sums.weights / sums.overall if sums.overall > 0 else sums.weights
    sizes, directions = np.linalg.eigh(S)
    curvature = (settings.unobserved_weight + settings.curvature * share)[:, None] * np.maximum(sizes, 0.0) + ridge
    return np.asarray(((gradient @ directions) / np.maximum(curvature, 1e-12)) @ directions.T)


def _symmetric(upper: Array, size: int) -> Array:
    """The matrix of an upper triangle."""
    S = np.zeros((size, size))
    if upper.size:
        S[np.triu_indices(size)] = upper
    return S + np.triu(S, 1).T


def predict(items: Items, device: Device, broadcast: Broadcast, settings: Settings, steps: int = 0) -> Array:
    """The client's own predictions of ratings; ``steps`` add nothing to a solution."""
    X = item_columns(broadcast.V, broadcast.public, settings).astype(np.float64)
    ratings: Array = X[items] @ fold_in(X, device.items, device.ratings, settings, broadcast.public)
    return ratings


def user_weights(U: Array, X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """The weights that predicted ratings use, which never leave the device."""
    return fold_in(X, items, ratings, settings, public)


def fold_in(X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """A ridge regression of the person's ratings on public columns and W."""
    noise, size = settings.noise * public.noise, X.shape[1] - 1
    return ridge_regression(X, items, ratings, np.full(size, noise), np.zeros(size), noise)[0]


def list_weights(
    w: Array, X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems, after: int = 0
) -> Array:
    """Weights z over X such that X·z = u·w_i + rating weight × predicted rating; ``after`` W there are more columns."""
    columns = slice(X.shape[1] - after - settings.interaction_factors, X.shape[1] - after)
    scale = settings.interaction_scale
    z = settings.rating_weight * w
    z[columns] += person_factors(X[:, columns] / scale, items, ratings, settings, public) / scale
    return np.asarray(z)


def item_columns(W: NDArray[Any], public: PublicItems, settings: Settings) -> NDArray[Any]:
    """X = (b_i, constant, popularity, average, content, scaled W_i)."""
    scale = W.dtype.type(settings.interaction_scale)
    return np.hstack([public_columns(public, settings).astype(W.dtype), scale * W])
