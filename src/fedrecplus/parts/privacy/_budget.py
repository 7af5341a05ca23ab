"""What mechanisms with a budget share: its settings, what one person may contribute, and how the budget is divided."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fedrecplus.parts.privacy._accounting import ReleasePlan, planned
from fedrecplus.protocol import Upload
from fedrecplus.settings import Annotated, Settings as _Settings, number


class BudgetSettings(_Settings):
    """Options of every mechanism whose noise is calibrated for a whole training."""

    epsilon: Annotated[float, number(1e-3, 1e3, "ε that the whole training may spend, statistics included")] = 10.0
    delta: Annotated[float, number(1e-15, 0.1, "δ, below 1/clients")] = 1e-5
    clip: Annotated[float, number(0, 1e6, "L2 norm that a person's weighted update is clipped to; 0: none")] = 8.0
    cap: Annotated[
        int, number(1, 10**6, "ratings of a person that count in full; n of them weigh √(cap/n) each where n is more")
    ] = 50
    statistics_share: Annotated[float, number(0.01, 0.99, "share of the budget, as 1/σ², for the statistics")] = 0.45
    growth: Annotated[float, number(-3, 3, "a round's share of the budget grows with its number to this power")] = 0.7


class Calibration(NamedTuple):
    """What the noise of one release is made for."""

    multiplier: float
    sensitivity: float
    asked: int
    """clients that the release began with"""
    answered: int
    key: int
    """of the noise, where it is drawn from the seed"""


def plan(
    settings: BudgetSettings, rounds: int, sampling: float, statistics: bool, accountant: str = "PLD"
) -> ReleasePlan:
    """The noise of every release: statistics first, then more of the budget for later rounds."""
    shares = np.arange(1.0, rounds + 1.0) ** settings.growth
    share = settings.statistics_share if statistics else 0.0
    by_round = tuple((shares / shares.sum()).tolist())
    return planned(settings.epsilon, settings.delta, share, by_round, sampling, accountant)


def person_weight(ratings: int, cap: int) -> float:
    """√(cap/n), at most 1: so weighed, a person's vector of ratings has the norm √cap, however many there are.

    Ours: between a person's every rating counting the same and every person counting the same.
    """
    return float(np.sqrt(cap / max(ratings, cap)))


CLIPPED_SHARE = 0.1
"""of ``clip``: what a person whose update is clipped adds beside it, to be counted under the same noise"""


def bounded(upload: Upload, settings: BudgetSettings) -> Upload:
    """The upload weighed by the person's size and clipped.

    Its rows, its statistic, and ``CLIPPED_SHARE`` where it is clipped, together have norm ``clip`` at most.

    After: McMahan et al. 2018 (flat clipping of a user's whole update), Andrew et al. 2021 (who is clipped is counted)
    """
    weight = person_weight(len(upload.items), settings.cap)
    delta, statistic = (weight * np.where(np.isfinite(x), x, 0.0) for x in (upload.delta, upload.statistic))
    norm = float(np.sqrt(np.sum(delta**2) + np.sum(statistic**2)))
    most = settings.clip * np.sqrt(1.0 - CLIPPED_SHARE**2)
    if norm > most:
        factor = most / norm * (1.0 - 1e-12)  # so that rounding can't lift it over the bound
        delta, statistic = factor * delta, factor * statistic
    return replace(upload, delta=delta, statistic=statistic, clipped=bool(norm > most))
