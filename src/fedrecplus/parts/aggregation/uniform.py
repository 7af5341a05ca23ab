"""Every client counts the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.aggregation._weights import WeightSettings
from fedrecplus.protocol import Broadcast

CONSTANT = True
"""weights that no upload has a say in: whoever gives them need not see any"""


class Settings(WeightSettings):
    """Options of the rule."""


def weight(items: NDArray[np.int64], delta: NDArray[np.float64], broadcast: Broadcast, settings: Settings) -> float:
    """w = 1. After: Lin, Pan, Ming 2020 (FedRec), McMahan et al. 2017 (FedAvg)."""
    return 1.0
