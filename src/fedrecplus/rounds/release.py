"""What leaves the one who adds up: sums with noise, by the plan of the whole training."""

from __future__ import annotations

from dataclasses import replace

from fedrecplus.config import Config
from fedrecplus.parts.privacy import Plan
from fedrecplus.protocol import PublicItems, Sums


def plan_of(config: Config) -> Plan | None:
    """The noise of every release of a training, calibrated for its budget; None where there is none."""
    privacy = config.privacy
    if not privacy.part.has("plan"):
        return None
    sampling = config.cohort.fraction if config.cohort.sampling == "poisson" else 1.0
    statistics = config.statistics.source == "secure-sum"
    plan: Plan = privacy.part.plan(privacy.options, config.server.rounds, sampling, statistics)
    return plan


def released(sums: Sums, round_number: int, public: PublicItems, config: Config) -> Sums:
    """The sums as the server's step may see them. In simulation the noise is drawn from the seed.

    Weights by item are those of the statistics, which are paid for already, times the share of clients that answers.
    """
    privacy, plan = config.privacy, plan_of(config)
    if plan is None:
        return sums
    multiplier, answering = plan.rounds[round_number], config.cohort.fraction * (1.0 - config.cohort.dropout)
    noisy: Sums = privacy.part.release(sums, round_number, multiplier, privacy.options, config.seed)
    return replace(noisy, weights=answering * public.popularity)
