"""What a device knows and keeps to itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PseudoItems:
    """A client's pseudo items and their virtual ratings, items ascending."""

    items: NDArray[np.int64]
    ratings: NDArray[np.float64]
    """on the standard scale"""


@dataclass(frozen=True)
class Device:
    """One client: its ratings, its factors, its secret. No field of it leaves the device."""

    client: int
    items: NDArray[np.int64]
    """rated items, ascending"""
    ratings: NDArray[np.float64]
    """their ratings, on the standard scale"""
    step: float
    """distance between two ratings of the scale, in standard units"""
    U: NDArray[np.float64]
    """user factors (one per column of V; the item bias's is fixed at 1), then the user bias"""
    secret: int
    """key of every draw of this client: from the operating system on a real device, from the seed in simulation"""
    kept: PseudoItems | None = None
    """pseudo items of the first round, where they are kept"""
