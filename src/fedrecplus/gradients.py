"""The two gradient steps of matrix factorisation, on one client's rows. Each equation of a step has its home here."""

from __future__ import annotations

from dataclasses import dataclass
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


def step_sizes(settings: Config, round_number: int) -> StepSizes:
    """The local step sizes in a round.

    Ours: with ``decay_per = rating``, V decays no faster for having pseudo items, which pull it nowhere else.
    """
    client, model = settings.client, settings.model
    decay_V = model.regularisation / (rows_per_rating(settings) if model.decay_per == "rating" else 1.0)
    decay_U = model.regularisation if model.user_regularisation < 0 else model.user_regularisation
    rate = client.learning_rate * client.learning_rate_decay**round_number
    return StepSizes(rate, decay_V, decay_U, Shape.of(model).u_trained)


def rows_per_rating(settings: Config) -> float:
    """1 + ρ: how many rows are uploaded for each that is rated."""
    return 1.0 + settings.pseudo_items.ratio if settings.pseudo_items.rule != "none" else 1.0


def floor_step(V: Array, popularity: NDArray[Any], settings: Config, round_number: int) -> Array:
    """−K η_L floor/n_i (V_i − V̄): what holds an item with n_i ratings to the mean row V̄, in the unit of an aggregate.

    The aggregate is a mean over an item's uploads, so decay by λ counts as much for one rating as for a thousand.
    This is a weight that ratings must outweigh together. No row goes further than to the mean.
    Ours: rows of rare items otherwise follow one or two ratings, and are worse than none.
    """
    client = settings.client
    reach = client.local_epochs * step_sizes(settings, round_number).rate
    uploads = np.maximum(popularity, 1) * rows_per_rating(settings)
    share = np.minimum(reach * settings.model.floor / uploads, 1.0)
    pull: Array = (share[:, None] * (mean_row(V, popularity) - V)).astype(V.dtype)
    return pull


def errors(U: Array, V: Array, ratings: Array) -> Array:
    """e = r − r̂, for ratings less the global mean. Paper: Section "Problem Setup" """
    return ratings - predict(U, V, 0.0)


def user_step(U: Array, V: Array, ratings: Array, U_prior: Array, sizes: StepSizes) -> Array:
    """U ← U − η_L (λ U − mean of e_ui V_i over the rows). Paper: Eq. (4), Algorithm 1, line 5"""
    e = errors(U, V, ratings)
    pull = np.append(e @ V, e.sum()) / len(e)
    return U - sizes.rate * sizes.trained * (sizes.decay_U * (U - U_prior) - pull)


def item_step(U: Array, V: Array, ratings: Array, V_prior: Array, sizes: StepSizes) -> Array:
    """V_i ← V_i − η_L g_ui, g_ui = λ V_i − e_ui U, for all rows. Paper: Eq. (3), (6), Algorithm 1, lines 6–7"""
    e = errors(U, V, ratings)
    return V - sizes.rate * (sizes.decay_V * (V - V_prior) - np.outer(e, U[:-1]))
