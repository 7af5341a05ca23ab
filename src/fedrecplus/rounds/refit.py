"""A second, private U: fitted on the device to the rated items alone, used for predictions, never for an upload."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.model import Shape, mean_row, prior, typical
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds.traits import foretold_rows, trait_columns

Array = NDArray[np.float64]
Table = NDArray[Any]


class Expected(NamedTuple):
    """What is expected of a person before any rating, by everybody alike."""

    U: Array
    mean_item: Array
    """the mean row of V (and one, for the bias), times the root of how many ratings of it count as given"""


def prediction_table(V: Table, public: PublicItems, rating: float, mean: float, settings: Config) -> Table:
    """The table that predictions come from: V, its rows held to what is public, and public traits beside the factors.

    All of it is public, so that server and devices have the same table, and nothing is trained on it.
    """
    if settings.prediction.factors != "refit":
        return V
    table = V
    if holds_rows(settings):
        table = _held(V.astype(np.float64), public, rating, mean, settings)
    columns = trait_columns(public, settings.prediction)
    if columns.shape[1]:
        table = np.insert(table, [settings.model.factors] * columns.shape[1], columns, axis=1)
    return table.astype(V.dtype, copy=False)


def _held(table: Table, public: PublicItems, rating: float, mean: float, settings: Config) -> Table:
    """Rows of few ratings moved to where others suggest them; an item that nobody rated has the mean row.

    First by c/(c + n_i) of the way to the row that the item's traits foretell. Then along the typical person's factors,
    by another c/(c + n_i) of the way to where this person's rating is the item's public average.
    Ours: a row of few ratings says less of an item than its genres and its average do, and pseudo items blur it.
    """
    how, shape, counts = settings.prediction, Shape.of(settings.model), public.popularity
    if counts.any():
        table[counts == 0] = mean_row(table, counts)
    if how.trait_ratings > 0 and counts.any():
        share = how.trait_ratings / (how.trait_ratings + counts)
        table += share[:, None] * (foretold_rows(table, public, how.trait_ratings) - table)
    along = typical(table, counts, rating, settings.model, mean)[: shape.v_columns]
    along[shape.factors :] = 1.0  # what an item bias is multiplied by
    if how.average_ratings > 0 and len(public.average) and along.any():
        gap = public.average - mean - table @ along
        share = how.average_ratings / (how.average_ratings + counts)
        table += np.outer(share * gap, along / (along @ along))
    return table


def holds_rows(settings: Config) -> bool:
    """Whether predictions come from rows that are held to what is public, so that there is one for every item."""
    how = settings.prediction
    return how.factors == "refit" and (how.average_ratings > 0 or how.trait_ratings > 0)


def widened(U: Table, table: Table, settings: Config) -> Table:
    """Factors, of one client or of several, with a zero for each trait that the table has beside the model's own."""
    traits = table.shape[1] - Shape.of(settings.model).v_columns
    wide: Table = np.insert(U, [settings.model.factors] * traits, 0.0, axis=-1)
    return wide


def expected(table: Table, popularity: NDArray[Any], rating: float, mean: float, settings: Config) -> Expected:
    """What refits shrink to, for a ``prediction_table``; ``rating`` is the mean of all ratings, one public number.

    Nobody is expected to have a taste for a trait: they are there for what sets a person apart.
    """
    how, factors, shape = settings.prediction, settings.model.factors, _shape(table, settings)
    item = np.append(mean_row(table, popularity)[: shape.factors], np.ones(int(shape.biases)))
    U = prior(settings.model, mean)[0]
    if how.shrink_to == "typical":
        V = np.delete(table, np.s_[factors : shape.factors], axis=1)
        U = typical(V, popularity, rating, settings.model, mean)
    return Expected(widened(U, table, settings), np.sqrt(how.mean_ratings) * item)


def _shape(table: Table, settings: Config) -> Shape:
    """The shape of a model that had the table's traits as factors of its own."""
    return Shape(table.shape[1] - settings.model.biases, settings.model.biases)


def refit(V: Array, ratings: Array, mean: float, settings: Config, start: Expected) -> Array:
    """argmin_U Σ (r − U·V)² + (λn + floor)‖U − prior‖² + b ((U − prior)·V̄)² over the n rated rows V, in closed form.

    The last term is as if b ratings of the mean item V̄ had been just as expected: along V̄ all ratings pull together,
    so that one or two would otherwise count for too much.

    V are rows of a ``prediction_table``. It needs them and the person's ratings, nothing else, so it is also how a
    newcomer gets factors without a round of training (fold-in). Ours: a U stepped over rated rows alone predicts
    better, and would give them away if an upload came from it.
    """
    shape = _shape(V, settings)
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
