"""The middle of what clients sent, number by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.aggregation._rows_by_item import rows_by_item
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Settings


class CoordinateMedian(RobustAggregation[Settings]):
    """Medians by item."""

    def aggregate(self, uploads: Sequence[Upload], broadcast: Broadcast) -> Array:
        """Per item and column, the median over the clients that uploaded the item.

        After: Yin, Chen, Ramchandran, Bartlett 2018.
        """
        table = np.zeros(broadcast.V.shape)
        for item, rows in rows_by_item(uploads):
            table[item] = np.median(rows, axis=0)
        return table
