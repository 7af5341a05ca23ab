"""The paper's server step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.server_optimizer._rate import RateSettings, rate

Array = NDArray[np.float64]
MOMENTS = 0
"""tables that it keeps between rounds"""


class Settings(RateSettings):
    """Options of the optimizer."""


def step(aggregate: Array, moments: list[Array], settings: Settings, round_number: int) -> tuple[Array, list[Array]]:
    """V ← V + η A. Paper: Algorithm 1, line 11"""
    return rate(settings, round_number) * aggregate, []
