"""A second, private U: fitted on the device to the rated items alone, used for predictions, never for an upload."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.model import Shape, mean_row, prior, typical
from fedrecplus.protocol import PublicItems

Array = NDArray[np.float64]
Table = NDArray[Any]


class Expected(NamedTuple):
    """What is expected of a person before any rating, by everybody alike."""

    U: Array
    mean_item: Array
    """the mean row of V (and one, for the bias), times the root of how many ratings of it count as given"""


def prediction_table(V: Table, public: PublicItems, rating: float, mean: float, settings: Config) -> Table:
    """The rows of V that predictions come from: each moved along the typical person's factors, by c/(c + n_i) of the
    way to where this person's rating is the item's public average; an item that nobody rated has the mean row.

    All of it is public, so that server and devices have the same table, and nothing is trained on it.
    Ours: a row of few ratings says less of how good an item is than their average does, and pseudo items blur it.
    """
    if not holds_rows(settings):
        return V
    shape, counts = Shape.of(settings.model), public.popularity
    table = V.astype(np.float64)
    if counts.any():
        table[counts == 0] = mean_row(V, counts)
    along = typical(table, counts, rating, settings.model, mean)[: shape.v_columns]
    along[shape.factors :] = 1.0  # what an item bias is multiplied by
    if len(public.average) and along.any():
        weight = settings.prediction.average_ratings
        gap = public.average - mean - table @ along
        table += np.outer(weight / (weight + counts) * gap, along / (along @ along))
    return table.astype(V.dtype)


def holds_rows(settings: Config) -> bool:
    """Whether predictions come from rows that are held to public averages, so that there is one for every item."""
    return settings.prediction.factors == "refit" and settings.prediction.average_ratings > 0


def expected(V: Array, popularity: NDArray[Any], rating: float, mean: float, settings: Config) -> Expected:
    """What refits shrink to, for the whole table V; ``rating`` is the mean of all ratings, one public number."""
    how, shape = settings.prediction, Shape.of(settings.model)
    item = np.append(mean_row(V, popularity)[: shape.factors], np.ones(int(shape.biases)))
    U = prior(settings.model, mean)[0]
    if how.shrink_to == "typical":
        U = typical(V, popularity, rating, settings.model, mean)
    return Expected(U, np.sqrt(how.mean_ratings) * item)


def refit(V: Array, ratings: Array, mean: float, settings: Config, start: Expected) -> Array:
    """argmin_U Σ (r − U·V)² + (λn + floor)‖U − prior‖² + b ((U − prior)·V̄)² over the n rated rows V, in closed form.

    The last term is as if b ratings of the mean item V̄ had been just as expected: along V̄ all ratings pull together,
    so that one or two would otherwise count for too much.

    It needs V and the person's ratings, nothing else, so it is also how a newcomer gets factors without a round of
    training (fold-in). Ours: a U stepped over rated rows alone predicts better, and would give them away if an upload
    came from it.
    """
    shape = Shape.of(settings.model)
    U_prior, mean_item = start
    U = U_prior.copy()
    targets = ratings - mean
    if shape.biases:
        U[shape.factors] = 1.0
        targets = targets - V[:, shape.factors]
    X = np.hstack([V[:, : shape.factors], np.ones((len(V), int(shape.biases)))])
    free = shape.u_trained.astype(bool)
    decay = settings.prediction.regularisation * len(V) + settings.prediction.floor
    gram = X.T @ X + np.outer(mean_item, mean_item) + max(decay, 1e-9) * np.eye(X.shape[1])
    U[free] = U_prior[free] + np.linalg.solve(gram, X.T @ (targets - X @ U_prior[free]))
    return U
