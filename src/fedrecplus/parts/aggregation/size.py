"""Clients with more rows count more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.aggregation._weights import WeightSettings
from fedrecplus.protocol import Broadcast


class Settings(WeightSettings):
    """Options of the rule."""


def weight(items: NDArray[np.int64], delta: NDArray[np.float64], broadcast: Broadcast, settings: Settings) -> float:
    """w = n_u, the rows that the client trained on. After: McMahan et al. 2017 (FedAvg)."""
    return float(len(items))
