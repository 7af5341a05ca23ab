"""A server step with memory: directions that rounds agree on add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.server_optimizer._rate import RateSettings, rate
from fedrecplus.settings import Annotated, number

Array = NDArray[np.float64]
MOMENTS = 1
"""tables that it keeps between rounds"""


class Settings(RateSettings):
    """Options of the optimizer."""

    momentum: Annotated[float, number(0, 1 - 1e-9, "β₁, share of the last direction that is kept")] = 0.9


def step(aggregate: Array, moments: list[Array], settings: Settings, round_number: int) -> tuple[Array, list[Array]]:
    """m ← β m + A, V ← V + η m. After: Hsu, Qi, Brown 2019 (FedAvgM)."""
    direction = settings.momentum * moments[0] + aggregate
    return rate(settings, round_number) * direction, [direction]
