"""A server step with memory: directions that rounds agree on add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import ServerSettings

MOMENTS = 1
"""tables that this rule keeps between rounds"""


def step(
    aggregate: NDArray[np.float64], moments: list[NDArray[np.float64]], settings: ServerSettings, round_number: int
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """m ← β m + A, V ← V + η m. After: Hsu, Qi, Brown 2019 (FedAvgM)."""
    direction = settings.momentum * moments[0] + aggregate
    return settings.learning_rate * direction, [direction]
