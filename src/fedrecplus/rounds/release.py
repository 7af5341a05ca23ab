"""What leaves the one who adds up: sums with noise, by the plan of the whole training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import Config
from fedrecplus.parts.channel import RingChannel, SummingChannel
from fedrecplus.parts.privacy import (
    CLIPPED_SHARE,
    NEIGHBOURING,
    ZERO_OUT,
    BudgetMechanism,
    Calibration,
    ReleasePlan,
    Words,
    os_words,
)
from fedrecplus.parts.privacy.central import Central
from fedrecplus.protocol import PublicItems, Sums
from fedrecplus.randomness import subkey

STATISTICS = "statistics"
"""the release before the first round"""


def plan_of(config: Config) -> ReleasePlan | None:
    """The noise of every release of a training, calibrated for its budget; None where there is none."""
    if not isinstance(config.privacy, BudgetMechanism):
        return None
    sampling = config.cohort.fraction if config.cohort.sampling == "poisson" else 1.0
    statistics = config.statistics.source == "secure-sum"
    return config.privacy.plan(config.server.rounds, sampling, statistics)


def neighbouring(config: Config) -> str:
    """Which data sets the claim can hardly tell apart.

    Where devices add noise, or a ring is made for so many clients, all depends on how many take part, and the server
    sees who does: a person's numbers are hidden, not that the person was asked.
    """
    by_cohort = config.privacy.NOISE_ON_DEVICES or isinstance(config.channel, RingChannel)
    return ZERO_OUT if by_cohort else NEIGHBOURING


def released(
    sums: Sums,
    round_number: int,
    public: PublicItems,
    config: Config,
    words: Words | None = None,
    asked: int | None = None,
) -> Sums:
    """The sums as the server's step may see them. The noise comes from ``words``, by default the operating system's.

    ``asked`` is how many clients the round began with; those in the sum, if nobody says. Weights by item are those of
    the statistics, which are paid for already, times the share of clients that is in a sum.
    """
    privacy, plan = config.privacy, plan_of(config)
    if plan is None:
        return sums
    rows, unit = sums.total.size, CLIPPED_SHARE * privacy.settings.clip
    vector = np.concatenate([sums.total.ravel().astype(np.float64), sums.statistic, [unit * sums.clipped]])
    multiplier, name = plan.rounds[round_number], f"round {round_number}"
    sensitivity = privacy.settings.clip + rounding_norm(sums, config)
    asked = sums.clients if asked is None else asked
    if sums.noise > 0.0:  # the devices' own is in it already, as in every deployed sum under ``distributed``
        noisy, sd = vector, sums.noise
    else:
        noisy, sd = with_noise(vector, multiplier, sensitivity, asked, sums.clients, name, config, words)
    answering = config.cohort.fraction * config.answering
    return replace(
        sums,
        total=noisy[:rows].reshape(sums.total.shape),
        statistic=noisy[rows:-1],
        clipped=float(noisy[-1]) / unit,
        weights=np.asarray(answering * public.popularity, dtype=np.float64),
        overall=1.0,
        clients=1,  # how many there were is not released; a model takes overall/clients, the mean weight
        noise=sd,
    )


def rounding_norm(sums: Sums, config: Config) -> float:
    """What a channel's rounding, which comes after clipping, can add to the norm of one client's vector."""
    if not isinstance(config.channel, SummingChannel):
        return 0.0
    return config.channel.rounding_norm(sums.total.size, sums.statistic.size + 1, sums.clients)


def with_noise(
    vector: Array,
    multiplier: float,
    sensitivity: float,
    asked: int,
    answered: int,
    name: str,
    config: Config,
    words: Words | None = None,
) -> tuple[Array, float]:
    """One release, with the mechanism's noise, and its standard deviation: a sum over those who answered.

    With ``config.seeded_noise`` the same release has the same noise, which whoever knows the seed takes off again.
    """
    mechanism = config.privacy if isinstance(config.privacy, BudgetMechanism) else Central()
    key = subkey(config.seed, "release", name)
    if words is None and not config.seeded_noise:
        words = os_words
    return mechanism.noisy(vector, Calibration(multiplier, sensitivity, asked, answered, key), words)
