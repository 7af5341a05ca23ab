"""The two gradient steps of matrix factorisation, on one client's rows. Each equation of a step has its home here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.model import Shape, mean_row, predict

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StepSizes:
    """Numbers that a local step needs besides the rows."""

    rate: float  # η_L
    decay_V: float  # λ
    decay_U: float
    trained: Array
    """1 for the columns of U that are trained, 0 for the others"""
    contrast: float = 1.0
    """how much larger, or smaller, U's steps are where its factors differ"""
    factors: int = 0


def step_sizes(settings: Config, round_number: int) -> StepSizes:
    """The local step sizes in a round.

    Ours: with ``decay_per = rating``, V decays no faster for having pseudo items, which pull it nowhere else.
    """
    client, model = settings.client, settings.model
    decay_V = model.regularisation / (rows_per_rating(settings) if model.decay_per == "rating" else 1.0)
    decay_U = model.regularisation if model.user_regularisation < 0 else model.user_regularisation
    rate = client.learning_rate * client.learning_rate_decay**round_number
    return StepSizes(rate, decay_V, decay_U, Shape.of(model).u_trained, client.contrast, model.factors)


def contrasted(step: Array, contrast: float | Array, factors: int) -> Array:
    """c·s + (1 − c)·mean(s) over the factors of each row: the part of a step in which factors differ, enlarged.

    What all factors do together moves every prediction, so steps must be small there; where they differ, a person's or
    an item's own taste, the same step would take hundreds of rounds. Steps that come to rest do so at the same place.
    c is one number, or one for each row.

    >>> contrasted(np.array([1.0, 3.0, 7.0]), 4.0, factors=2)
    array([-2.,  6.,  7.])
    """
    if np.all(contrast == 1.0):
        return step
    factor_columns = step[..., :factors]
    common = factor_columns.mean(axis=-1, keepdims=True)
    enlarged = contrast * factor_columns + (1.0 - contrast) * common
    return np.concatenate([enlarged, step[..., factors:]], axis=-1).astype(step.dtype, copy=False)


def unevenness(V: Array, factors: int) -> Array:
    """‖V_i − mean‖² of each row: how far its factors are from being all alike."""
    rows = V[:, :factors].astype(np.float64)
    uneven: Array = ((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return uneven


FEW = 10.0
"""ratings that count as few"""


def kept_steady(sizes: StepSizes, V: Array, ratings: float = 0.0) -> StepSizes:
    """The same with c ≤ 1/(η_L (λ + (1 + 10/n) mean of ‖V_i − mean‖²)) for the n rows V that U steps over.

    ``ratings`` stands for n where it is not the number of rows; c = 1 is the paper's step and stays.

    The mean bounds the steepest curvature in which factors differ, so no step goes further than to the bottom of it.
    Where ratings are few, that curvature is these rows' alone and in every one of their errors; what moves all factors,
    and the rows themselves, comes on top, and the three together must not pass the bottom either. One or two ratings
    may get less than a plain step: they say next to nothing of what sets factors apart.
    """
    if sizes.contrast == 1.0 or len(V) == 0:
        return sizes
    steepest = sizes.decay_U + (1.0 + FEW / (ratings or len(V))) * float(unevenness(V, sizes.factors).mean())
    return replace(sizes, contrast=min(1.0 / max(sizes.rate * steepest, 1e-12), sizes.contrast))


def rows_per_rating(settings: Config) -> float:
    """1 + ρ: how many rows are uploaded for each that is rated."""
    return 1.0 + settings.pseudo_items.ratio if settings.pseudo_items.rule != "none" else 1.0


def floor_step(V: Array, popularity: NDArray[Any], settings: Config, round_number: int) -> Array:
    """−K η_L floor/n_i (V_i − V̄): what holds an item with n_i ratings to the mean row V̄, in the unit of an aggregate.

    The aggregate is a mean over an item's uploads, so decay by λ counts as much for one rating as for a thousand.
    This is a weight that ratings must outweigh together. No row goes further than to the mean.
    Ours: rows of rare items otherwise follow one or two ratings, and are worse than none.
    """
    share = floor_share(popularity, settings, round_number)
    pull: Array = (share[:, None] * (mean_row(V, popularity) - V)).astype(V.dtype)
    return pull


def floor_share(popularity: NDArray[Any], settings: Config, round_number: int) -> Array:
    """What part of the way to the mean row the floor pulls each item in a round: K η_L floor/n_i, at most all of it."""
    reach = settings.client.local_epochs * step_sizes(settings, round_number).rate
    uploads = np.maximum(popularity, 1) * rows_per_rating(settings)
    share: Array = np.minimum(reach * settings.model.floor / uploads, 1.0)
    return share


def server_contrast(popularity: NDArray[Any], settings: Config, round_number: int) -> float | Array:
    """1 + (c − 1)(1 − share): rows that the floor pulls far already are not thrown further, past the mean and back."""
    contrast = settings.server.contrast
    if contrast == 1.0 or settings.model.floor == 0:
        return contrast
    rows: Array = 1.0 + (contrast - 1.0) * (1.0 - floor_share(popularity, settings, round_number)[:, None])
    return rows


def errors(U: Array, V: Array, ratings: Array) -> Array:
    """e = r − r̂, for ratings less the global mean. Paper: Section "Problem Setup" """
    return ratings - predict(U, V, 0.0)


def user_step(U: Array, V: Array, ratings: Array, U_prior: Array, sizes: StepSizes) -> Array:
    """U ← U − η_L (λ U − mean of e_ui V_i over the rows). Paper: Eq. (4), Algorithm 1, line 5

    Ours: contrast, 1 in the paper.
    """
    e = errors(U, V, ratings)
    pull = np.append(e @ V, e.sum()) / len(e)
    gradient = sizes.decay_U * (U - U_prior) - pull
    return U - sizes.rate * sizes.trained * contrasted(gradient, sizes.contrast, sizes.factors)


def item_step(U: Array, V: Array, ratings: Array, V_prior: Array, sizes: StepSizes) -> Array:
    """V_i ← V_i − η_L g_ui, g_ui = λ V_i − e_ui U, for all rows. Paper: Eq. (3), (6), Algorithm 1, lines 6–7"""
    e = errors(U, V, ratings)
    return V - sizes.rate * (sizes.decay_V * (V - V_prior) - np.outer(e, U[:-1]))
