"""The two gradient steps of matrix factorisation, on one client's rows. Each equation of a step has its home here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.model import Shape, predict

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
    client, model, pseudo = settings.client, settings.model, settings.pseudo_items
    shared = model.decay_per == "rating" and pseudo.rule != "none"
    decay_V = model.regularisation / (1.0 + pseudo.ratio) if shared else model.regularisation
    decay_U = model.regularisation if model.user_regularisation < 0 else model.user_regularisation
    rate = client.learning_rate * client.learning_rate_decay**round_number
    return StepSizes(rate, decay_V, decay_U, Shape.of(model).u_trained)


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
