"""A server step that scales every number by its own history."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import ServerSettings

MOMENTS = 2
"""tables that this rule keeps between rounds"""

_SMALL = 1e-8


def step(
    aggregate: NDArray[np.float64], moments: list[NDArray[np.float64]], settings: ServerSettings, round_number: int
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Adam on the aggregate taken as a negative gradient. After: Reddi et al. 2021 (FedAdam), with bias correction."""
    first = settings.momentum * moments[0] + (1.0 - settings.momentum) * aggregate
    second = settings.second_momentum * moments[1] + (1.0 - settings.second_momentum) * aggregate**2
    done = round_number + 1
    unbiased_first = first / (1.0 - settings.momentum**done)
    unbiased_second = second / (1.0 - settings.second_momentum**done)
    return settings.learning_rate * unbiased_first / (np.sqrt(unbiased_second) + _SMALL), [first, second]
