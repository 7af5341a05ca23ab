"""Every client counts the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config


def weight(
    items: NDArray[np.int64],
    delta: NDArray[np.float64],
    step: NDArray[np.float64],
    spread: NDArray[np.float64],
    settings: Config,
) -> float:
    """w = 1. After: Lin, Pan, Ming 2020 (FedRec), McMahan et al. 2017 (FedAvg)."""
    return 1.0
