"""Columns of items that everybody knows, the ridge regression of ratings on columns, and of a table on public features.

What ``reconstruction``, ``ials`` and ``joint`` share.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, add_to_diagonal, like, namespace, product, solve
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Annotated, Settings as _Settings, number

POPULARITY_COLUMN = 2
"""the column of X that has the popularity of items"""
_MOST_CONTENT = 32
"""columns of a catalogue at most, the ones that most ratings meet: a solve takes time with the square of the columns"""
_FARTHEST = 3.0
"""standard deviations from the mean that popularity and average may be: else the rarest items would stand for all"""


class PublicSettings(_Settings):
    """Options of every model that regresses a person's ratings on columns."""

    noise: Annotated[float, number(1e-6, 1e6, "σ², variance of ratings around their predictions")] = 1.2
    item_prior: Annotated[float, number(1e-6, 1e6, "prior strength of a row of V: pseudo-ratings")] = 30.0
    bias_scale: Annotated[float, number(0, 1e3, "prior sd of a person's bias")] = 0.5
    public_scale: Annotated[float, number(0, 1e3, "prior sd of the weights of other public columns")] = 0.18


def ridge_regression(x: Array, ratings: Array, ridge: Array, prior: Array, columns: int = 0) -> tuple[Array, Array]:
    """The posterior mean of people's weights, given ratings of rows x of X, the weights' ridges and prior means.

    The first column of X is the baseline: its weight is 1 and certain, and it has no ridge and no prior. Beside the
    mean, the last columns of the weights' covariance over the noise: without the baseline's row, which is zero. Where
    only the mean is asked for and ratings are fewer than weights, one equation for each rating gives the same.
    """
    xp, A = namespace(x), x[..., 1:]
    transposed, surprise = xp.matrix_transpose(A), ratings - x[..., 0] - A @ prior
    if columns == 0 and A.shape[-2] < A.shape[-1]:
        scaled = transposed / ridge[..., None]
        multipliers, covariance = solve(add_to_diagonal(A @ scaled, 1.0), surprise)
        solution = product(scaled, multipliers)
    else:
        solution, covariance = solve(add_to_diagonal(transposed @ A, ridge), product(transposed, surprise), columns)
    return xp.concat([xp.ones_like(solution[..., :1]), prior + solution], axis=-1), covariance


def regression_shares(x: Array, targets: Array, ridge: Array) -> Array:
    """Row k is what target k adds to ``ridge_regression``'s weights, which are linear in them: A⁻¹ x_k t_k."""
    A = x[:, 1:]
    inverse = np.linalg.inv(add_to_diagonal(A.T @ A, ridge))
    return np.hstack([np.zeros((len(x), 1)), (targets[:, None] * A) @ inverse])


@functools.lru_cache(maxsize=4)  # the reference asks once for every client
def public_columns(public: PublicItems, settings: PublicSettings) -> Array:
    """The columns that nothing is learnt of: the baseline, and what everybody knows besides."""
    baseline, known, content = _features(public)
    columns = np.hstack([known, content]) * settings.public_scale
    columns[:, 0] = settings.bias_scale
    return np.hstack([baseline[:, None], columns])


def with_public_columns(table: NDArray[Any], public: PublicItems, settings: PublicSettings) -> NDArray[Any]:
    """The public columns and a table's own."""
    columns: NDArray[Any] = namespace(table).concat([like(public_columns(public, settings), table), table], axis=1)
    return columns


@functools.lru_cache(maxsize=4)
def public_regression(public: PublicItems, settings: PublicSettings) -> tuple[Array, Array]:
    """Features F and a matrix R such that F R V are the rows that public features predict.

    A ridge regression of V on popularity, average, their products and the catalogue, over all items; a row counts as
    n_i/(n_i + prior strength), the share of it that is more than chance, and the mean row is free.
    """
    F = _regressors(public)
    return F, _regression(F, public.popularity, settings)


def rows_from_features(table: NDArray[Any], public: PublicItems, settings: PublicSettings) -> Array:
    """Rows for the items beyond the table, which are new: what their public features predict from the table's rows."""
    known, F = len(table), _regressors(public)
    regression = _regression(F[:known], public.popularity[:known], settings)
    return np.asarray(F[known:] @ (regression @ table.astype(np.float64)))


def _regressors(public: PublicItems) -> Array:
    """Popularity, average, their products and the catalogue."""
    _, known, content = _features(public)
    popularity, average = known[:, 1], known[:, -1]
    return np.hstack([known, content, np.stack([popularity**2, average**2, popularity * average], axis=1)])


def _regression(F: Array, counts: NDArray[Any], settings: PublicSettings) -> Array:
    weighted = F * (counts / (counts + settings.item_prior))[:, None]
    gram = weighted.T @ F + np.eye(F.shape[1])
    gram[0, 0] -= 1.0 - 1e-9
    return np.asarray(np.linalg.solve(gram, weighted.T))


def public_features(public: PublicItems) -> Array:
    """Popularity, average and the catalogue."""
    _, known, content = _features(public)
    return np.hstack([known[:, 1:], content])


def _features(public: PublicItems) -> tuple[Array, Array, Array]:
    """The baseline, (constant, popularity, average) with unit variance over ratings, and the catalogue as unit rows."""
    counts, baseline = public.popularity, public.averages()
    known = [np.ones(len(counts)), _standardised(np.log1p(counts), counts), _standardised(baseline, counts)]
    content = unit_rows(public.content)
    most = np.sort(np.argsort(-(counts @ content), kind="stable")[:_MOST_CONTENT])
    return baseline, np.stack(known, axis=1), content[:, most]


def _standardised(values: NDArray[Any], counts: NDArray[Any]) -> Array:
    """Mean 0 and variance 1 over all ratings; zero where all items are the same."""
    weights = counts / max(counts.sum(), 1)
    centred = values - weights @ values
    deviation = float(np.sqrt(weights @ centred**2))
    if deviation < 1e-9:
        return np.zeros(len(values))
    return np.asarray(np.clip(centred / deviation, -_FARTHEST, _FARTHEST))
