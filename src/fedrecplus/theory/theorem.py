"""The convergence theorem: its conditions, its bound, and the rate that a run shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from fedrecplus.config import Config
from fedrecplus.parts import part
from fedrecplus.theory.constants import Constants


@dataclass(frozen=True)
class Condition:
    """Something that the theorem asks for."""

    what: str
    holds: bool
    found: str
    """the numbers, or the setting"""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def constant_c(k: Constants, config: Config) -> float:
    """c = ½ − 10L²K²η_L²(A² + 1)(χ²_{p‖w}A² + 1): the largest that the theorem allows. Paper: Theorem 1"""
    steps = k.L * config.client.local_epochs * config.client.learning_rate
    return 0.5 - 10.0 * steps**2 * (k.A**2 + 1.0) * (k.chi_pw * k.A**2 + 1.0)


def conditions(k: Constants, config: Config) -> list[Condition]:
    """What Theorem 1 asks for, with what the run had. Paper: Theorem 1"""
    rate, K, eta = config.client.learning_rate, config.client.local_epochs, config.server.learning_rate
    limit, c = 1.0 / (8.0 * k.L * K), constant_c(k, config)
    client, server, how = config.client, config.server, config.aggregation
    constant = client.learning_rate_decay == server.learning_rate_decay == 1.0
    return [
        Condition("η_L < 1/(8LK)", rate < limit, f"{rate:.3g} against {limit:.3g}"),
        Condition("c > 0", c > 0.0, f"c = {c:.3g}"),
        Condition("η_L < c", rate < c, f"{rate:.3g} against {c:.3g}"),
        Condition("η ≤ 1/(η_L L)", eta <= 1.0 / (rate * k.L), f"{eta:.3g} against {1.0 / (rate * k.L):.3g}"),
        Condition("constant step sizes", constant, f"decay {client.learning_rate_decay}, {server.learning_rate_decay}"),
        Condition("a plain server step", server.step == "plain", f"server.step={server.step}"),
        Condition(
            "steps along gradients",
            client.contrast == server.contrast == 1.0,
            f"client.contrast={client.contrast:g}, server.contrast={server.contrast:g}",
        ),
        Condition("steps by clients' updates alone", config.model.floor == 0, f"model.floor={config.model.floor:g}"),
        Condition("one weight per client", weighs(config), f"aggregation.rule={how.rule}"),
        Condition("Σ p_u = 1 over all", how.normalise == "clients", f"aggregation.normalise={how.normalise}"),
        Condition(
            "everybody takes part",
            client.fraction == 1.0 and client.dropout == 0.0,
            f"client.fraction={client.fraction:g}, client.dropout={client.dropout:g}",
        ),
    ]


def weighs(config: Config) -> bool:
    """Whether the aggregate is a weighted mean of the clients' updates at all."""
    return hasattr(part("aggregation", config.aggregation.rule), "weight") and config.aggregation.denoising == 0.0


def bound(k: Constants, config: Config, gap: float, rounds: int) -> dict[str, float]:
    """The right side after so many rounds, and its parts; ``gap`` is f₀ − f_*. Paper: Theorem 1, with Φ"""
    rate, K, eta, c = (
        config.client.learning_rate, config.client.local_epochs, config.server.learning_rate, constant_c(k, config),
    )  # fmt: skip
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

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def fit(rounds: Sequence[int], smallest: Sequence[float]) -> Fit:
    """Least squares in relative errors, since the values span decades. Paper: Corollary 1, its rate and its floor

    >>> round(fit([1, 2, 4, 8], [3.0, 2.0, 1.5, 1.25]).c, 3)
    1.0
    """
    t, y = np.asarray(rounds, dtype=np.float64), np.asarray(smallest, dtype=np.float64)
    X = np.column_stack([t**-0.5, 1.0 / t, np.ones(len(t))]) / y[:, None]
    (a, b, c), _ = nnls(X, np.ones(len(t)))
    rest = a / np.sqrt(t) + b / t + c - y
    spread = float(((y - y.mean()) ** 2).sum())
    return Fit(float(a), float(b), float(c), 1.0 - float(rest @ rest) / spread if spread > 0 else 1.0)
