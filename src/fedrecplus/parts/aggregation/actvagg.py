"""FedFast's aggregation: on each item, clients whose copy of its row moved more count more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.aggregation._rows_by_item import sorted_rows, weighted_means
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Settings


class Actvagg(RobustAggregation[Settings]):
    """Means by item, weighted by how far a row moved."""

    def aggregate(self, uploads: Sequence[Upload], broadcast: Broadcast) -> Array:
        """Per item, the mean of its rows with weights ‖Δ_ui‖₁.

        Deviation: ActvAGG alone. FedFast also draws clients equally from clusters of their U and moves the U of those
        who weren't drawn, for which the server has to see everybody's U; here no U leaves its device.
        After: Muhammad et al. 2020 (FedFast).
        """
        table = np.zeros(broadcast.V.shape)
        if uploads:
            items, rows, starts = sorted_rows(uploads)
            table[items] = weighted_means(rows, np.abs(rows).sum(axis=1), starts)
        return table
