"""Noise at the aggregate: devices clip, and whoever adds up adds Gaussian noise before anybody looks.

The claim is about what is released (V, statistics), and holds against everybody but the one who adds up and adds the
noise. Amplification by sampling is claimed only where each client takes part by its own coin (Poisson sampling), and
only against those who don't learn who took part.

After: McMahan et al. 2018 (DP-FedAvg)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fedrecplus.parts.privacy import _budget, _checks
from fedrecplus.parts.privacy._accounting import Plan
from fedrecplus.parts.privacy._noise import seeded_gaussian
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.randomness import subkey
from fedrecplus.settings import Annotated, text

UNIT = "user"
MECHANISM = "Gaussian noise at the aggregate"


class Settings(_budget.BudgetSettings):
    """Options of the mechanism."""

    amplification: Annotated[
        bool, text("count on nobody knowing who took part in a round; needs cohort.sampling=poisson")
    ] = False


def check_with(config: Any) -> None:
    """Refuse claims that would mean nothing."""
    _checks.check_claim(config)


def plan(settings: Settings, rounds: int, sampling: float, statistics: bool) -> Plan:
    """The noise of every release of a training."""
    return _budget.plan(settings, rounds, sampling if settings.amplification else 1.0, statistics)


def protect(upload: Upload, secret: int, broadcast: Broadcast, settings: Settings) -> Upload:
    """On the device: weigh and clip. No noise yet."""
    return _budget.bounded(upload, settings)


def release(sums: Sums, round_number: int, multiplier: float, settings: Settings, key: int) -> Sums:
    """The sums with noise; in simulation it is drawn from a key."""
    sd, rows = multiplier * settings.clip, sums.total.size
    noise = sd * seeded_gaussian(subkey(key, "central", round_number), (rows + sums.statistic.size,))
    total = sums.total + noise[:rows].reshape(sums.total.shape)
    return replace(sums, total=total, statistic=sums.statistic + noise[rows:], noise=sd)
