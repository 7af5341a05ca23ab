"""The paper's server step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import ServerSettings

MOMENTS = 0
"""tables that this rule keeps between rounds"""


def step(
    aggregate: NDArray[np.float64], moments: list[NDArray[np.float64]], settings: ServerSettings, round_number: int
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """V ← V + η A. Paper: Algorithm 1, line 11"""
    return settings.learning_rate * aggregate, []
