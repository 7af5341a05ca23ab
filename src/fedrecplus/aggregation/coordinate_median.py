"""The middle of what clients sent, number by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._rows_by_item import rows_by_item
from fedrecplus.config.settings import Config
from fedrecplus.protocol import Upload


def aggregate(uploads: Sequence[Upload], shape: tuple[int, ...], settings: Config) -> NDArray[np.float64]:
    """Per item and column, the median over the clients that uploaded the item; ``normalise`` has no say in it.

    After: Yin, Chen, Ramchandran, Bartlett 2018.
    """
    table = np.zeros(shape)
    for item, rows in rows_by_item(uploads):
        table[item] = np.median(rows, axis=0)
    return table
