"""Federated reconstruction: the device solves for its own weights exactly, in every round, and keeps nothing.

r̂ = b_i + w_u·x_i. The baseline b_i is the item's damped mean rating. x_i are columns that everybody knows: a constant,
popularity, average, the catalogue's features, and V_i, the only ones that are learnt. w_u is a ridge regression on the
device. After: Singhal et al. 2021, who take gradient steps where this solves
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import normal, subkey
from fedrecplus.settings import Annotated, number, text
from fedrecplus.settings import Settings as _Settings

Array = NDArray[np.float64]
Items = NDArray[np.int64]
_MOST_CONTENT = 32
"""columns of a catalogue at most, the ones that most ratings meet: a solve takes time with the square of the columns"""
PREDICTS_COLD_ITEMS = True
_FARTHEST = 3.0
"""standard deviations from the mean that popularity and average may be: else the rarest items would stand for all"""


class Settings(_Settings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of V")] = 32
    learning_rate: Annotated[float, number(1e-12, 1e6, "η_L, step size of the rows of V")] = 1.0
    regularisation: Annotated[float, number(0, 1e6, "λ, L2 regularisation of the rows of V, per rating")] = 0.02
    item_prior: Annotated[float, number(0, 1e6, "prior strength of a row of V: pseudo-ratings that ask for zero")] = 2.0
    user_regularisation: Annotated[float, number(0, 1e6, "L2 regularisation of the device's weights, per rating")] = 0.02
    user_prior: Annotated[float, number(0, 1e6, "L2 regularisation of the device's weights, in all")] = 4.0
    public_weight: Annotated[float, number(0, 1e3, "scale of the columns constant, popularity and average")] = 0.5
    content_weight: Annotated[float, number(0, 1e3, "scale of the catalogue's columns")] = 0.5
    solve_over: Annotated[
        Literal["all", "rated"],
        text("rows that the uploads' weights are solved over: rated alone is more accurate, and gives the set away"),
    ] = "rated"
    init_scale: Annotated[float, number(0, 1e3, "standard deviation of V's start values")] = 0.1


def tables(settings: Settings) -> dict[str, int]:
    """The shared tables and their columns."""
    return {"V": settings.factors}


def user_columns(settings: Settings) -> int:
    """Nothing is kept on the device between rounds."""
    return 0


def start_items(seed: int, items: int, settings: Settings, public: PublicItems) -> Array:
    """V before training: noise."""
    cells = np.arange(items * settings.factors, dtype=np.uint64).reshape(items, settings.factors)
    return settings.init_scale * normal(subkey(seed, "start-V"), cells)


def start_users(seed: int, clients: Items, settings: Settings, public: PublicItems) -> Array:
    """Nothing."""
    return np.zeros((len(clients), 0))


def local_training(device: Device, rows: Rows, broadcast: Broadcast, settings: Settings) -> tuple[Array, Array]:
    """Solve for the weights, then one gradient step on each row: V_i ← V_i + η_L (e_i w_V − λ V_i)."""
    X = item_columns(broadcast.V, broadcast.public, settings)[rows.items].astype(np.float64)
    used = rows.rated | (settings.solve_over == "all")
    w = fold_in(X[used], rows.ratings[used], settings, broadcast.public)
    e = rows.ratings - X @ w
    V, w_V = X[:, -settings.factors :], w[-settings.factors :]
    return device.U, V + settings.learning_rate * (np.outer(e, w_V) - settings.regularisation * V)


def damp(aggregate: Array, counts: Array, V: Array, settings: Settings) -> Array:
    """(n A_i − c V_i)/(n + c): n clients' mean update, beside c pseudo-ratings that ask for a row of zeros.

    Ours: a damped mean, as for item means; rows of rare items otherwise follow one or two ratings.
    """
    share = (settings.item_prior / (counts + settings.item_prior + 1e-12))[:, None]
    damped: Array = (1.0 - share) * aggregate - share * settings.learning_rate * settings.regularisation * V
    return damped


def predict(items: Items, device: Device, broadcast: Broadcast, settings: Settings, steps: int = 0) -> Array:
    """The client's own predictions, from weights solved over its rated rows; ``steps`` add nothing to a solution."""
    X = item_columns(broadcast.V, broadcast.public, settings)
    ratings: Array = X[items] @ fold_in(X[device.items], device.ratings, settings, broadcast.public)
    return ratings


def item_columns(V: NDArray[Any], public: PublicItems, settings: Settings) -> Array:
    """X = (b_i, constant, popularity, average, content, V_i)."""
    X: Array = np.hstack([public_columns(public, settings).astype(V.dtype), V])
    return X


@functools.lru_cache(maxsize=4)  # the reference asks once for every client
def public_columns(public: PublicItems, settings: Settings) -> Array:
    """The columns that nothing is learnt of: the baseline and what everybody knows besides."""
    counts = public.popularity
    columns = [np.ones(len(counts)), _standardised(np.log1p(counts), counts)]
    if len(public.average):
        columns.append(_standardised(public.average, counts))
    baseline = public.averages()[:, None]
    named = settings.public_weight * np.stack(columns, axis=1)
    return np.hstack([baseline, named, settings.content_weight * _content(public)])


def user_weights(U: Array, X: Array, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """The weights that predictions use: solved over the rated rows alone, and never uploaded."""
    return fold_in(X, ratings, settings, public)


def fold_in(X: Array, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """argmin_w Σ (r − b − w·x)² + (λ_u n + c_u)‖w‖² over n rows; the baseline's own weight is 1.

    It needs public rows and the person's ratings, nothing else: how a newcomer gets weights without a round.
    """
    A, targets = X[:, 1:], ratings - X[:, 0]
    gram = A.T @ A + ridge(len(X), settings, public) * np.eye(A.shape[1])
    return np.append(1.0, np.linalg.solve(gram, A.T @ targets))


def ridge(rows: int, settings: Settings, public: PublicItems) -> float:
    """λ_u n + c_u, more of it on coarse scales."""
    return max(public.noise * (settings.user_regularisation * rows + settings.user_prior), 1e-9)


def attacker(settings: Settings) -> OfModel:
    """What an attacker knows of w: the baseline's weight is 1, and V's columns show theirs."""
    return OfModel(slice(-settings.factors, None), {0: 1.0}, "exactly", settings.solve_over)


def gradient_rows(delta: Array, V: Array, round_number: int, settings: Settings) -> Array:
    """Δ/η_L + λV = e_i·w_V, row by row."""
    A: Array = delta / settings.learning_rate + settings.regularisation * V
    return A


def _content(public: PublicItems) -> Array:
    """The catalogue's features as unit rows."""
    content = unit_rows(public.content)
    most = np.sort(np.argsort(-(public.popularity @ content), kind="stable")[:_MOST_CONTENT])
    return content[:, most]


def _standardised(values: NDArray[Any], counts: NDArray[Any]) -> Array:
    """Mean 0 and variance 1 over all ratings; zero where all items are the same."""
    weights = counts / max(counts.sum(), 1)
    centred = values - weights @ values
    deviation = float(np.sqrt(weights @ centred**2))
    if deviation < 1e-9:
        return np.zeros(len(values))
    return np.asarray(np.clip(centred / deviation, -_FARTHEST, _FARTHEST))
