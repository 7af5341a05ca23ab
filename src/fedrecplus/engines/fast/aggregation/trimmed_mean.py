"""Kernel of ``parts/aggregation/trimmed_mean.py``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.aggregation._by_item import by_item, trimmed
from fedrecplus.parts.aggregation.trimmed_mean import Settings
from fedrecplus.protocol import Broadcast, Upload


def aggregate(uploads: Sequence[Upload], message: Broadcast, options: Settings) -> NDArray[np.float64]:
    """See ``trimmed``."""
    return by_item(trimmed, options.hostile, uploads, message.V.shape)
