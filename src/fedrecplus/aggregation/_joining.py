"""The weighted sum of uploads, and what it is divided by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import AggregationSettings
from fedrecplus.protocol import Upload

Array = NDArray[np.float64]


def join(
    uploads: Sequence[Upload], weights: Sequence[float], shape: tuple[int, ...], how: AggregationSettings
) -> Array:
    """A = Σ w_u Δ_u over Σ w_u: per item among those who uploaded it, or over all clients of the round.

    Paper: Eq. (12), over all clients. After: Lin, Pan, Ming 2020 (FedRec), per item
    """
    total = np.zeros(shape)
    per_item = np.zeros(shape[0])
    for upload, weight in zip(uploads, weights, strict=True):
        # a client that weighs itself sends w·Δ
        total[upload.items] += upload.delta if upload.weight is not None else weight * upload.delta
        per_item[upload.items] += weight * (1.0 if upload.counts is None else upload.counts)
    return divide(total, per_item, float(sum(weights)), how)


def divide(total: Array, per_item: Array, overall: float, how: AggregationSettings) -> Array:
    """The sum over what the settings divide it by; rows that nobody uploaded stay zero."""
    if how.normalise == "sum":
        return total
    if how.normalise == "clients":
        return total / overall if overall > 0 else total
    return np.divide(total, per_item[:, None], out=np.zeros_like(total), where=per_item[:, None] > 0)
