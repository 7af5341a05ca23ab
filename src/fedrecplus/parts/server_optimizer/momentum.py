"""A server step with memory: directions that rounds agree on add up."""

from __future__ import annotations

from fedrecplus.arrays import Array
from fedrecplus.parts.server_optimizer import RateSettings, ServerOptimizer
from fedrecplus.settings import Annotated, number


class Settings(RateSettings):
    """Options of the optimizer."""

    momentum: Annotated[float, number(0, 1 - 1e-9, "β₁, share of the last direction that is kept")] = 0.9


class Momentum(ServerOptimizer[Settings]):
    """FedAvgM."""

    MOMENTS = 1

    def step(self, aggregate: Array, moments: list[Array], round_number: int) -> tuple[Array, list[Array]]:
        """m ← β m + A, V ← V + η m. After: Hsu, Qi, Brown 2019 (FedAvgM)."""
        direction = self.settings.momentum * moments[0] + aggregate
        return self.rate * direction, [direction]

    def moments_of(self, step: Array, round_number: int) -> list[Array]:
        """m = step/η."""
        return [step / self.rate]
