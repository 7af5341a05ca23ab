"""Which settings suit a budget: few factors, few rounds and a tight clip where there is little of it.

What counts is the signal: clients over the noise multiplier of the whole training. Rows were tuned on validation cuts
of training ratings of the first 2,999 users of MovieLens-1M at ε = 1, 2.5, 5, 10 and 20, and that tuning is no part of
any budget (docs/differential-privacy.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fedrecplus.parts.privacy._accounting import planned

_POPULARITY = 1.5
"""ratings that a standard deviation of log popularity is worth in lists: the best at ε = 1, 5, 10 and 20 on validation
cuts of ML-100K"""


@dataclass(frozen=True)
class Suited:
    """Settings that were tuned for a signal."""

    signal: float
    """clients over the whole training's noise multiplier"""
    rounds: int
    factors: int
    clip: float
    cap: int
    statistics_share: float
    growth: float
    cooldown: float
    noise: float
    item_prior: float
    user_mean: float
    bias_scale: float
    public_scale: float
    init_scale: float
    curvature: float

    def settings(self) -> dict[str, float]:
        """By their names in a config; a server that takes whole steps, and no variance of rows in the ridge."""
        named = {f"privacy.{name}": getattr(self, name) for name in ("clip", "cap", "statistics_share", "growth")}
        named |= {f"server.{name}": getattr(self, name) for name in ("rounds", "cooldown")}
        of_model = ("factors", "noise", "item_prior", "user_mean", "bias_scale", "public_scale", "init_scale")
        named |= {f"model.{name}": getattr(self, name) for name in (*of_model, "curvature")}
        named["model.popularity_weight"] = round(_POPULARITY / self.public_scale, 2)
        return named | {"model.row_variance": 0.0, "server_optimizer.learning_rate": 1.0}

    def with_choices(self) -> dict[str, Any]:
        """With a table of choices beside V: it starts from public features, and lists rank by it, not by popularity."""
        named = {"model.rule": "joint", "model.interaction_factors": 12, "model.interaction_start": "features"}
        lists = {"model.structure": "whole", "model.recency": 0.0, "model.popularity_weight": 0.0}
        return named | self.settings() | lists


# fmt: off
ROWS = (
    # signal, rounds, factors, clip, cap, statistics, growth, cooldown, σ², prior, mean, bias, public, init, curvature
    Suited(800, 2, 1, 1.9, 22, 0.68, 0.85, 0.58, 0.98, 27.6, 2.19, 0.40, 0.12, 0.012, 0.33),
    Suited(1860, 9, 5, 4.7, 31, 0.24, 1.5, 0.43, 0.76, 16.3, 3.26, 0.37, 0.127, 0.108, 0.42),
    Suited(3360, 7, 5, 4.7, 32, 0.24, 1.3, 0.51, 0.69, 15.3, 2.1, 0.37, 0.12, 0.108, 0.45),
    Suited(6000, 8, 5, 6.1, 53, 0.30, 1.55, 0.43, 0.74, 15.2, 1.59, 0.37, 0.185, 0.084, 0.48),
    Suited(10340, 17, 5, 9.5, 107, 0.26, 1.4, 0.65, 0.86, 10.9, 1.42, 0.40, 0.154, 0.084, 0.48),
)
CHOICES = Suited(10340, 8, 4, 5.5, 70, 0.26, 1.4, 0.65, 0.86, 10.9, 1.42, 0.40, 0.154, 0.084, 0.48)
# fmt: on
"""chosen on a validation cut of all of MovieLens-1M"""
_FEWEST = 8000.0
"""the least signal at which a table of choices is worth its part of the budget"""


def tuned_for_budget(epsilon: float, delta: float, clients: int, *, choices: bool = False) -> dict[str, Any]:
    """The settings of the row that was tuned at the nearest signal, and the model that has them.

    Where lists are to follow ``choices`` and the signal is large enough for a table of them, that of both tables.
    """
    multiplier = planned(epsilon, delta, 1.0, (), 1.0).statistics
    signal = clients / (multiplier or 1.0)
    if choices and signal >= _FEWEST:
        return CHOICES.with_choices()
    row = min(ROWS, key=lambda row: abs(math.log(row.signal / signal)))
    return {"model.rule": "reconstruction", **row.settings()}
