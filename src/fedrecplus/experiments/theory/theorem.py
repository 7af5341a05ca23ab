"""The convergence theorem: its conditions, its bound, and the rate that a run shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from fedrecplus.config import Config
from fedrecplus.experiments.theory.constants import Constants
from fedrecplus.parts.aggregation import WeightedAggregation


@dataclass(frozen=True)
class Condition:
    """Something that the theorem asks for."""

    what: str
    holds: bool
    found: str
    """the numbers, or the setting"""


def constant_c(k: Constants, config: Config) -> float:
    """c = ½ − 10L²K²η_L²(A² + 1)(χ²_{p‖w}A² + 1): the largest that the theorem allows. Paper: Theorem 1"""
    local = config.model.settings
    steps = k.L * local.local_epochs * local.learning_rate
    return float(0.5 - 10.0 * steps**2 * (k.A**2 + 1.0) * (k.chi_pw * k.A**2 + 1.0))


def conditions(k: Constants, config: Config) -> list[Condition]:
    """What Theorem 1 asks for, with what the run had. Paper: Theorem 1"""
    local, optimizer, cohort = config.model.settings, config.server_optimizer, config.cohort
    rate, eta, aggregation = local.learning_rate, optimizer.settings.learning_rate, config.aggregation
    decay, cooldown = local.learning_rate_decay, config.server.cooldown
    constant = (decay, cooldown) == (1.0, 0.0)
    normalise = aggregation.normalise
    limit, c = 1.0 / (8.0 * k.L * local.local_epochs), constant_c(k, config)
    return [
        Condition("η_L < 1/(8LK)", rate < limit, f"{rate:.3g} against {limit:.3g}"),
        Condition("c > 0", c > 0.0, f"c = {c:.3g}"),
        Condition("η_L < c", rate < c, f"{rate:.3g} against {c:.3g}"),
        Condition("η ≤ 1/(η_L L)", eta <= 1.0 / (rate * k.L), f"{eta:.3g} against {1.0 / (rate * k.L):.3g}"),
        Condition("constant step sizes", constant, f"decay {decay}, cooldown {cooldown:g}"),
        Condition("a plain server step", optimizer.rule == "sgd", f"server_optimizer.rule={optimizer.rule}"),
        Condition("one weight per client", weighs(config), f"aggregation.rule={aggregation.rule}"),
        Condition("Σ p_u = 1 over all", normalise == "cohort", f"aggregation.normalise={normalise}"),
        Condition(
            "everybody takes part",
            (cohort.fraction, cohort.dropout) == (1.0, 0.0),
            f"cohort.fraction={cohort.fraction:g}, cohort.dropout={cohort.dropout:g}",
        ),
    ]


def weighs(config: Config) -> bool:
    """Whether the aggregate is a weighted mean of the clients' updates at all."""
    return isinstance(config.aggregation, WeightedAggregation) and not config.channel.exchanges


def bound(k: Constants, config: Config, gap: float, rounds: int) -> dict[str, float]:
    """The right side after so many rounds, and its parts; ``gap`` is f₀ − f_*. Paper: Theorem 1, with Φ"""
    rate, K = config.model.settings.learning_rate, config.model.settings.local_epochs
    eta, c = config.server_optimizer.settings.learning_rate, constant_c(k, config)
    noise = (1.0 - k.alpha) ** 2 * k.rho**2
    drift = 2.5 * rate**2 * K * k.L**2 * (k.sigma_L**2 + 6 * K * k.sigma_G**2 + 6 * K * noise)
    variance = 0.5 * eta * rate * k.L * (k.sigma_L**2 + noise)
    weighing = 20.0 * k.L**2 * K**2 * (k.A**2 + 1.0) * rate**2 * k.chi_wp * k.sigma_G**2
    factor = 2.0 * (k.chi_wp * k.A**2 + 1.0)
    parts = {
        "vanishing": factor * gap / (c * eta * rate * K * rounds),
        "drift": factor * drift / c,
        "variance": factor * variance / c,
        "weighing": factor * weighing / c,
        "floor": 2.0 * k.chi_wp * k.sigma_G**2,
    }
    return {**parts, "bound": sum(parts.values())}


@dataclass(frozen=True)
class Fit:
    """a/√t + b/t + c, none below zero, through the smallest ‖∇f‖² so far."""

    a: float
    b: float
    c: float
    r_squared: float

    def at(self, rounds: Sequence[int]) -> list[float]:
        """The curve."""
        return [self.a / t**0.5 + self.b / t + self.c for t in rounds]


def fit(rounds: Sequence[int], smallest: Sequence[float]) -> Fit:
    """Least squares in relative errors, since the values span decades. Paper: Corollary 1, its rate and its floor

    >>> round(fit([1, 2, 4, 8], [3.0, 2.0, 1.5, 1.25]).c, 3)
    1.0
    """
    t, y = np.asarray(rounds, dtype=np.float64), np.asarray(smallest, dtype=np.float64)
    X = np.column_stack([t**-0.5, 1.0 / t, np.ones(len(t))]) / y[:, None]
    (a, b, c), _ = nnls(X, np.ones(len(t)))
    rest = a / np.sqrt(t) + b / t + c - y
    total = float(((y - y.mean()) ** 2).sum())
    return Fit(float(a), float(b), float(c), 1.0 - float(rest @ rest) / total if total > 0 else 1.0)
