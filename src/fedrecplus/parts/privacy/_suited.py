"""Which settings suit a budget: few factors, few rounds and a tight clip where there is little of it.

What counts is the signal: clients over the noise multiplier of the whole training. Rows were tuned on validation cuts
of training ratings of the first 2,999 users of MovieLens-1M at ε = 1, 5, 10 and 20 (docs/differential-privacy.md), and
that tuning is no part of any budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedrecplus.parts.privacy._accounting import planned


@dataclass(frozen=True)
class Suited:
    """Settings for a budget."""

    signal: float
    """clients over the whole training's noise multiplier, at which the row was tuned"""
    settings: tuple[tuple[str, float], ...]
    """of model ``reconstruction``, the rounds and the mechanism, by their names in a config"""


_COMMON = (
    ("model.row_variance", 0.0),
    ("model.noise", 0.74),
    ("server_optimizer.learning_rate", 1.0),
    ("server.cooldown", 0.43),
)
ROWS = (
    Suited(
        6000.0,
        (
            *_COMMON,
            ("model.factors", 5),
            ("model.item_prior", 20.6),
            ("model.user_mean", 1.59),
            ("model.bias_scale", 0.385),
            ("model.public_scale", 0.19),
            ("model.init_scale", 0.06),
            ("model.curvature", 0.61),
            ("server.rounds", 8),
            ("privacy.cap", 55),
            ("privacy.clip", 6.8),
            ("privacy.statistics_share", 0.32),
            ("privacy.growth", 1.5),
        ),
    ),
)


def suited(epsilon: float, delta: float, clients: int) -> dict[str, float]:
    """The settings of the row that was tuned at the nearest signal."""
    multiplier = planned(epsilon, delta, 1.0, (), 1.0).statistics
    signal = clients / (multiplier or 1.0)
    return dict(min(ROWS, key=lambda row: abs(math.log(row.signal / signal))).settings)
