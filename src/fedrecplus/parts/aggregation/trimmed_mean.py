"""The mean of what clients sent, number by number, without the largest and the smallest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.aggregation._rows_by_item import rows_by_item
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Annotated, Settings as _Settings, number


class Settings(_Settings):
    """Options of the rule."""

    hostile: Annotated[float, number(0, 0.5, "share of an item's rows left out at either end")] = 0.1


class TrimmedMean(RobustAggregation[Settings]):
    """Trimmed means by item."""

    def aggregate(self, uploads: Sequence[Upload], broadcast: Broadcast) -> Array:
        """Per item and column, the mean over the clients that uploaded the item, a share ``hostile`` of them left out
        at either end.

        After: Yin, Chen, Ramchandran, Bartlett 2018.
        """
        table = np.zeros(broadcast.V.shape)
        for item, rows in rows_by_item(uploads):
            cut = trimmed_count(len(rows), self.settings.hostile)
            table[item] = np.sort(rows, axis=0)[cut : len(rows) - cut].mean(axis=0)
        return table


def trimmed_count(clients: int, trim: float) -> int:
    """How many rows are left out at either end: the share, rounded down, and never all of them.

    >>> trimmed_count(25, 0.1), trimmed_count(4, 0.5)
    (2, 1)

    After: Yin, Chen, Ramchandran, Bartlett 2018.
    """
    return min(int(trim * clients), (clients - 1) // 2)
