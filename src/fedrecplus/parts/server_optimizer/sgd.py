"""The paper's server step."""

from __future__ import annotations

from fedrecplus.arrays import Array
from fedrecplus.parts.server_optimizer import RateSettings, ServerOptimizer


class Sgd(ServerOptimizer[RateSettings]):
    """A plain step."""

    def step(self, aggregate: Array, moments: list[Array], round_number: int) -> tuple[Array, list[Array]]:
        """V ← V + η A. Paper: Algorithm 1, line 11"""
        return self.rate * aggregate, []
