"""Differential privacy: who adds the noise."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

from fedrecplus.arrays import Array
from fedrecplus.errors import UserError
from fedrecplus.parts.part import Part, S
from fedrecplus.parts.privacy._accounting import (
    NEIGHBOURING as NEIGHBOURING,
    ZERO_OUT as ZERO_OUT,
    Release as Release,
    ReleasePlan as ReleasePlan,
    epsilon_of as epsilon_of,
    gaussian_epsilon as gaussian_epsilon,
    planned as planned,
)
from fedrecplus.parts.privacy._budget import CLIPPED_SHARE as CLIPPED_SHARE, BudgetSettings, Calibration as Calibration
from fedrecplus.parts.privacy._noise import (
    Words as Words,
    discrete_gaussian as discrete_gaussian,
    os_words as os_words,
    seeded_gaussian as seeded_gaussian,
    seeded_words as seeded_words,
)
from fedrecplus.parts.privacy._statistics import (
    contribution as contribution,
    figures as figures,
    sensitivity as sensitivity,
)
from fedrecplus.parts.privacy._tuned import tuned_for_budget as tuned_for_budget
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import Key

B = TypeVar("B", bound=BudgetSettings)


class Mechanism(Part[S]):
    """What is done to an upload on its device, and what is claimed of it."""

    kind: ClassVar[str] = "privacy"
    label: ClassVar[str] = "differential privacy mechanism"
    UNIT: ClassVar[str | None] = None
    """of what the presence is hidden: a ``user``, a ``number``, or nothing"""
    MECHANISM: ClassVar[str] = ""
    """how it is called in results"""
    NOISE_ON_DEVICES: ClassVar[bool] = False
    """whoever adds up never has the sums without noise"""

    def protect(self, upload: Upload, secret: Key, broadcast: Broadcast) -> Upload:
        """On the device: clip, add noise."""
        return upload

    @property
    def protects(self) -> bool:
        """Whether ``protect`` does anything."""
        return type(self).protect is not Mechanism.protect

    @property
    def amplifies(self) -> bool:
        """Whether it counts on nobody knowing who took part."""
        return False

    def claim(self, numbers: int, rounds: int) -> dict[str, Any] | None:
        """What is claimed where there is no budget of a whole training, for uploads with so many numbers."""
        return None


class BudgetMechanism(Mechanism[B]):
    """Noise that is calibrated for a whole training."""

    UNIT: ClassVar[str | None] = "user"

    def check_with(self, config: Any) -> None:
        """Refuse settings under which ε would not be what it says."""
        privacy, rule = config.privacy.settings, f"privacy.rule={config.privacy.rule}"
        if privacy.clip <= 0.0:
            raise UserError(
                f"{rule} without clipping: one person's update has no bound, so no noise covers it", "set privacy.clip"
            )
        if config.statistics.source == "participants":
            raise UserError(
                f"{rule} and statistics.source=participants: exact counts and averages of the participants are no "
                "part of any budget",
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

    @abstractmethod
    def plan(self, rounds: int, sampling: float, statistics: bool) -> ReleasePlan:
        """The noise of every release of a training."""

    @abstractmethod
    def noisy(self, vector: Array, release: Calibration, words: Words | None = None) -> tuple[Array, float]:
        """A sum over those who answered with noise, and the noise's standard deviation."""


def check_delta(delta: float, clients: int) -> None:
    """Refuse δ ≥ 1/clients: publishing one person's data whole would be allowed."""
    if delta * clients >= 1.0:
        raise UserError(
            f"δ = {delta:g} with {clients:,} clients means nothing: a mechanism that publishes all data of one random "
            "client has that δ",
            f"set privacy.delta (--delta) below {1.0 / clients:.1g}; a tenth of it, {0.1 / clients:.1g}, is usual",
        )
