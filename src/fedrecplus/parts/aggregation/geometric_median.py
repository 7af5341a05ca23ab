"""The row that lies nearest to all rows that clients sent for an item: a median in space, not number by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from fedrecplus.arrays import Array, compiled
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.aggregation._rows_by_item import sorted_rows, weighted_means
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Settings as _Settings


class Settings(_Settings):
    """Options of the rule."""

    iterations: ClassVar[int] = 100
    """most steps of Weiszfeld's algorithm: liars who are far away take many"""
    tolerance: ClassVar[float] = 1e-6
    """a step that moves no number further, by its own size, is the last"""
    smoothing: ClassVar[float] = 1e-6
    """ν, the least distance: a row may lie on the median"""


class GeometricMedian(RobustAggregation[Settings]):
    """Geometric medians by item."""

    def aggregate(self, uploads: Sequence[Upload], broadcast: Broadcast) -> Array:
        """Per item, argmin_z Σ ‖Δ_u − z‖ over its rows, by the smoothed Weiszfeld algorithm from their mean.

        Deviation: RFA takes the median of whole models. Clients send different rows here, so each item has its own.
        After: Pillutla, Kakade, Harchaoui 2022 (RFA).
        """
        table = np.zeros(broadcast.V.shape)
        if uploads:
            items, rows, starts = sorted_rows(uploads)
            median = weighted_means(rows, np.ones(len(rows)), starts)
            own = self.settings
            compiled().geometric_medians(rows, starts, own.iterations, own.tolerance, own.smoothing, median)
            table[items] = median
        return table
