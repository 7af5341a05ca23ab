"""The mean of the client's ratings, those of similar items weighing more."""

from __future__ import annotations

from fedrecplus.arrays import namespace, product, rows_of
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.similarity import similarity_matrix
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings
from fedrecplus.parts.virtual_ratings.user_average import mean_of_rated
from fedrecplus.protocol import Broadcast


class Weighted(VirtualRatings[FillSettings]):
    """A weighted mean."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfVirtualRatings(residual=1.0)

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """r'_j = Σ s_ij r_i / Σ s_ij over rated i with s_ij > 0; the user average where there are none.

        Ours: a reading of the paper's "virtual rates … based on latent relationships", less noisy than one neighbour
        """
        features, ratings = broadcast.features, device.ratings
        xp = namespace(features)
        cosines = similarity_matrix(rows_of(features, items), rows_of(features, device.items))
        weights = xp.where((device.items >= 0)[..., None, :], xp.clip(cosines, 0.0, None), 0.0)
        total, mean = xp.sum(weights, axis=-1), mean_of_rated(ratings, device)[..., None]
        weighted = product(weights, xp.astype(ratings, weights.dtype))
        return xp.where(total > 0, weighted / xp.where(total > 0, total, 1.0), mean)  # type: ignore[no-any-return]
