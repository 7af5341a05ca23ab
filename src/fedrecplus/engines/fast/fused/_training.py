"""What the kernels of ``round.py`` are told of local training, and the arrays that they work in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.fused._columns import stride, whole


class Steps(NamedTuple):
    """How a client trains."""

    mean: Any
    """global mean, zero where the model has none"""
    rate: Any
    decay: Any
    trained: Any
    epochs: int
    rated_only: bool
    fades: Any
    """what decay leaves of each epoch's move at the end; zero where there is no epoch"""


class EpochScratch(NamedTuple):
    """Arrays that local training works in, large enough for the client with most rows."""

    own: Any
    pull: Any
    table: Any
    targets: Any
    dots: Any
    errors: Any
    """of each epoch; the last ones are those of U steps"""
    pushes: Any
    numbers: Any

    @classmethod
    def of(cls, V: NDArray[Any], steps: Steps, largest: int) -> EpochScratch:
        """For so many rows."""
        padded, rows, slots = (V.shape[1] + 3) // 4 * 4, whole(largest), len(steps.fades)
        shapes = [padded, padded, (padded, stride(largest)), rows, rows, (slots + 1, rows), (slots, padded)]
        return cls._make([*(np.zeros(shape, V.dtype) for shape in shapes), np.empty(largest, np.int64)])
