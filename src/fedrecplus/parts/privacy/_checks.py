"""Claims that would mean nothing, refused with the reason."""

from __future__ import annotations

from typing import Any

from fedrecplus.errors import UserError


def check_claim(config: Any) -> None:
    """Refuse settings under which ε would not be what it says. ``config`` is the whole ``Config``."""
    privacy, rule = config.privacy.settings, f"privacy.rule={config.privacy.rule}"
    if privacy.clip <= 0.0:
        raise UserError(
            f"{rule} without clipping: one person's update has no bound, so no noise covers it", "set privacy.clip"
        )
    if config.statistics.source == "participants":
        raise UserError(
            f"{rule} and statistics.source=participants: exact counts and averages of the participants are no part of "
            "any budget",
            "set statistics.source=secure-sum, whose noise is part of the budget, or public",
        )
    if config.aggregation.rule != "uniform" or config.aggregation.normalise == "cohort":
        raise UserError(
            f"{rule} releases Σ wΔ alone, not the weights that aggregation.rule={config.aggregation.rule} with "
            f"normalise={config.aggregation.normalise} divides by",
            "set aggregation.rule=uniform and aggregation.normalise=item; persons are weighed by privacy.cap",
        )
    if config.hides_rows:
        raise UserError(
            f"{rule} with pseudo_items.rule={config.pseudo_items.rule}: which rows a person uploads depends on the "
            "person's data, and that is not accounted for",
            "set pseudo_items.rule=none, and channel.rule=sums or secure, with rows=whole",
        )
    if config.channel.VIEW == "sums" and config.channel.rows != "whole":
        raise UserError(
            f"{rule} with channel.rows={config.channel.rows}: which rows a person sends depends on the "
            "person's data, and that is not accounted for",
            "set channel.rows=whole",
        )
    if config.channel.bits < 32:
        raise UserError(
            f"{rule} with channel.bits={config.channel.bits}: its steps are coarse, and rounding by chance after "
            "clipping can lift an update far over privacy.clip, which the noise is calibrated to",
            "set channel.bits=32",
        )
    if config.privacy.amplifies and (config.cohort.fraction >= 1.0 or config.cohort.sampling != "poisson"):
        raise UserError(
            f"{rule} claims amplification by sampling with cohort.fraction={config.cohort.fraction:g} and "
            f"cohort.sampling={config.cohort.sampling}",
            "set cohort.sampling=poisson and cohort.fraction below 1, or privacy.amplification=false",
        )


def check_delta(delta: float, clients: int) -> None:
    """Refuse δ ≥ 1/clients: publishing one person's data whole would be allowed."""
    if delta * clients >= 1.0:
        raise UserError(
            f"δ = {delta:g} with {clients:,} clients means nothing: a mechanism that publishes all data of one random "
            "client has that δ",
            f"set privacy.delta (--delta) below {1.0 / clients:.1g}; a tenth of it, {0.1 / clients:.1g}, is usual",
        )
