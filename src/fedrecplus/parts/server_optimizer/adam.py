"""A server step that scales every number by its own history."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.server_optimizer._rate import RateSettings, rate
from fedrecplus.settings import Annotated, number

Array = NDArray[np.float64]
MOMENTS = 2
"""tables that it keeps between rounds"""
_SMALL = 1e-8


class Settings(RateSettings):
    """Options of the optimizer."""

    momentum: Annotated[float, number(0, 1 - 1e-9, "β₁, share of the last direction that is kept")] = 0.9
    second_momentum: Annotated[float, number(0, 1 - 1e-9, "β₂, share of the last squared step that is kept")] = 0.99


def step(aggregate: Array, moments: list[Array], settings: Settings, round_number: int) -> tuple[Array, list[Array]]:
    """Adam on the aggregate taken as a negative gradient. After: Reddi et al. 2021 (FedAdam), with bias correction."""
    first = settings.momentum * moments[0] + (1.0 - settings.momentum) * aggregate
    second = settings.second_momentum * moments[1] + (1.0 - settings.second_momentum) * aggregate**2
    done = round_number + 1
    unbiased_first = first / (1.0 - settings.momentum**done)
    unbiased_second = second / (1.0 - settings.second_momentum**done)
    return rate(settings, round_number) * unbiased_first / (np.sqrt(unbiased_second) + _SMALL), [first, second]
