"""Kernel of ``parts/aggregation/uniform.py``."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.parts.aggregation.uniform import Settings


def weighing(options: Settings, last_step: NDArray[Any]) -> Weighing:
    """Every client counts the same."""
    return Weighing()
