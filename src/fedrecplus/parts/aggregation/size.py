"""Clients with more rows count more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings
from fedrecplus.protocol import Broadcast


class Size(WeightedAggregation[WeightSettings]):
    """w = n_u."""

    def weight(self, items: NDArray[np.int64], delta: NDArray[np.float64], broadcast: Broadcast) -> float:
        """w = n_u, the rows that the client trained on. After: McMahan et al. 2017 (FedAvg)."""
        return float(len(items))
