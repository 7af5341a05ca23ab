"""The mean of the client's ratings, those of similar items weighing more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.similarity import similarity
from fedrecplus.parts.virtual_ratings import FillSettings, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast


class Weighted(VirtualRatings[FillSettings]):
    """A weighted mean."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfVirtualRatings(residual=1.0)

    def fill(
        self, items: NDArray[np.int64], device: Device, broadcast: Broadcast, predict: Predict
    ) -> NDArray[np.float64]:
        """r'_j = Σ s_ij r_i / Σ s_ij over rated i with s_ij > 0; the user average where there are none.

        Ours: a reading of the paper's "virtual rates … based on latent relationships", less noisy than one neighbour
        """
        weights = np.maximum(similarity(broadcast.features[items], broadcast.features[device.items]), 0.0)
        total = weights.sum(axis=1)
        mean = device.ratings.mean()
        ratings: NDArray[np.float64] = np.divide(
            weights @ device.ratings, total, out=np.full(len(items), mean), where=total > 0
        )
        return ratings
