"""Differential privacy: who adds the noise."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

from fedrecplus.arrays import Array
from fedrecplus.parts.part import Part, S
from fedrecplus.parts.privacy._accounting import (
    NEIGHBOURING as NEIGHBOURING,
    ZERO_OUT as ZERO_OUT,
    Release as Release,
    ReleasePlan as ReleasePlan,
    epsilon_of as epsilon_of,
    planned as planned,
)
from fedrecplus.parts.privacy._budget import CLIPPED_SHARE as CLIPPED_SHARE, BudgetSettings, Calibration as Calibration
from fedrecplus.parts.privacy._checks import check_claim, check_delta as check_delta
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
        """Refuse claims that would mean nothing."""
        check_claim(config)

    @abstractmethod
    def plan(self, rounds: int, sampling: float, statistics: bool) -> ReleasePlan:
        """The noise of every release of a training."""

    @abstractmethod
    def noisy(self, vector: Array, release: Calibration, words: Words | None = None) -> tuple[Array, float]:
        """A sum over those who answered with noise, and the noise's standard deviation."""
