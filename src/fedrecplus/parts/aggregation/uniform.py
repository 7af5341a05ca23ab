"""Every client counts the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings
from fedrecplus.protocol import Broadcast


class Uniform(WeightedAggregation[WeightSettings]):
    """w = 1."""

    CONSTANT = True

    def weight(self, items: NDArray[np.int64], delta: NDArray[np.float64], broadcast: Broadcast) -> float:
        """w = 1. After: Lin, Pan, Ming 2020 (FedRec), McMahan et al. 2017 (FedAvg)."""
        return 1.0
