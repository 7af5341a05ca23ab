"""Kernel of ``parts/aggregation/geometric_median.py``: without it, ten passes over all rows, each in several arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel
from fedrecplus.engines.fast.aggregation._by_item import by_item
from fedrecplus.parts.aggregation.geometric_median import Settings
from fedrecplus.protocol import Broadcast, Upload


def aggregate(uploads: Sequence[Upload], message: Broadcast, options: Settings) -> NDArray[np.float64]:
    """See ``_weiszfeld``."""
    run = functools.partial(_weiszfeld, options.iterations)
    return by_item(run, options.smoothing, uploads, message.V.shape)


@kernel
def _weiszfeld(iterations: int, part: Any, places: Any, order: Any, delta: Any, smoothing: float, table: Any) -> None:
    """The mean of an item's rows, then means weighted by one over the distance from the last."""
    width = delta.shape[1]
    total = np.empty(width)
    for item in part:
        first, n = places[item], places[item + 1] - places[item]
        if n == 0:
            continue
        for step in range(iterations + 1):
            weights = 0.0
            for c in range(width):
                total[c] = 0.0
            for j in range(n):
                row = order[first + j]
                squared = 0.0
                for c in range(width):
                    squared += (delta[row, c] - table[item, c]) ** 2
                weight = 1.0 if step == 0 else 1.0 / max(np.sqrt(squared), smoothing)
                weights += weight
                for c in range(width):
                    total[c] += weight * delta[row, c]
            for c in range(width):
                table[item, c] = total[c] / weights
