"""How the server moves V by the aggregate. After: Reddi et al. 2021 (FedOpt)"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

from fedrecplus.arrays import Array
from fedrecplus.parts.part import Part
from fedrecplus.settings import Annotated, Settings, number


class RateSettings(Settings):
    """Options of every server optimizer."""

    learning_rate: Annotated[float, number(1e-12, 1e9, "η, global step size")] = 1.0


R = TypeVar("R", bound=RateSettings)


class ServerOptimizer(Part[R]):
    """A step from an aggregate, and what is kept between rounds."""

    kind: ClassVar[str] = "server_optimizer"
    label: ClassVar[str] = "server optimizer"
    MOMENTS: ClassVar[int] = 0
    """tables that it keeps between rounds"""

    @abstractmethod
    def step(self, aggregate: Array, moments: list[Array], round_number: int) -> tuple[Array, list[Array]]:
        """What is added to V, and the moments as they are then."""

    def moments_of(self, step: Array, round_number: int) -> list[Array]:
        """The moments after a round, from the step that it took, where that tells them; else none."""
        return []

    @property
    def rate(self) -> float:
        """η; what falls over the rounds is ``server.cooldown``."""
        return self.settings.learning_rate
