"""Every client counts the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, zeros
from fedrecplus.parts.aggregation import ByDistance, WeightedAggregation, WeightSettings
from fedrecplus.protocol import Broadcast


class Uniform(WeightedAggregation[WeightSettings]):
    """w = 1."""

    CONSTANT = True

    def weight(self, items: NDArray[np.int64], delta: Array, broadcast: Broadcast) -> Any:
        """w = 1. After: Lin, Pan, Ming 2020 (FedRec), McMahan et al. 2017 (FedAvg)."""
        return zeros(items.shape[:-1], delta) + 1.0

    def by_distance(self, broadcast: Broadcast) -> ByDistance:
        """Distances have no say. Ours: fused kernels give every client the same weight then."""
        return ByDistance()
