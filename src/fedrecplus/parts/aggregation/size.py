"""Clients with more rows count more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, namespace
from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings
from fedrecplus.protocol import Broadcast


class Size(WeightedAggregation[WeightSettings]):
    """w = n_u."""

    def weight(self, items: NDArray[np.int64], delta: Array, broadcast: Broadcast) -> Any:
        """w = n_u, the rows that the client trained on. After: McMahan et al. 2017 (FedAvg)."""
        return namespace(items).sum(items >= 0, axis=-1)
