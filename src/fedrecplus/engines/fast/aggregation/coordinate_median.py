"""Kernel of ``parts/aggregation/coordinate_median.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.aggregation._by_item import by_item, trimmed
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Settings


def aggregate(uploads: Sequence[Upload], message: Broadcast, options: Settings) -> NDArray[np.float64]:
    """What is left of a mean when all but the one or two in the middle are cut off."""
    return by_item(trimmed, 0.5, uploads, message.V.shape)
