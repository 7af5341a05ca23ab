"""A server step that scales every number by its own history."""

from __future__ import annotations

from typing import ClassVar

from fedrecplus.arrays import Array
from fedrecplus.parts.server_optimizer import RateSettings, ServerOptimizer
from fedrecplus.settings import Annotated, number

_SMALL = 1e-8


class Settings(RateSettings):
    """Options of the optimizer."""

    momentum: Annotated[float, number(0, 1 - 1e-9, "β₁, share of the last direction that is kept")] = 0.9
    second_momentum: ClassVar[float] = 0.99
    """β₂, share of the last squared step that is kept, as FedOpt has it"""


class Adam(ServerOptimizer[Settings]):
    """FedAdam."""

    MOMENTS = 2

    def step(self, aggregate: Array, moments: list[Array], round_number: int) -> tuple[Array, list[Array]]:
        """Adam on the aggregate taken as a negative gradient, bias corrected. After: Reddi et al. 2021 (FedAdam)"""
        first = self.settings.momentum * moments[0] + (1.0 - self.settings.momentum) * aggregate
        second = self.settings.second_momentum * moments[1] + (1.0 - self.settings.second_momentum) * aggregate**2
        done = round_number + 1
        unbiased_first = first / (1.0 - self.settings.momentum**done)
        unbiased_second = second / (1.0 - self.settings.second_momentum**done)
        return self.rate * unbiased_first / (unbiased_second**0.5 + _SMALL), [first, second]
