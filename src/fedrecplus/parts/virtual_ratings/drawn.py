"""One of the client's own ratings, drawn, those of similar items more often: on the scale, and never surely a copy."""

from __future__ import annotations

from typing import ClassVar

from fedrecplus.arrays import cumulative, like, namespace, own_values, rows_of, subkey, uniform
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.similarity import similarity_matrix
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings, kept_round
from fedrecplus.protocol import Broadcast


class Settings(FillSettings):
    """Options of the rule."""

    temperature: ClassVar[float] = 0.2
    """of the cosine: 0 would be the nearest item's rating"""
    width: ClassVar[float] = 0.25
    """of what counts as the same public average, in standard units"""


class Drawn(VirtualRatings[Settings]):
    """A softened nearest."""

    NEEDS = frozenset({"features", "averages"})
    ATTACKER = OfVirtualRatings(residual=0.0, copied="drawn")

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """r'_j = r_i for a rated i drawn with probability ∝ exp(cos/temperature − (difference of averages)²/2 width²).

        Ours: virtual ratings spread like the client's real ones around what everybody expects of an item, they are on
        the scale by themselves, and only likely, not certain, to equal a neighbour's.
        """
        xp = namespace(items)
        shares = cumulative(self.copy_weights(items, device.items, broadcast))
        draws = uniform(subkey(device.secret, "drawn", kept_round(self.settings, broadcast.round)), items)
        places = xp.sum(shares <= (draws * shares[..., -1])[..., None], axis=-1)
        last = xp.sum(device.items >= 0, axis=-1)[..., None] - 1
        return own_values(device.ratings, xp.minimum(places, last))

    def copy_weights(self, items: Items, rated: Items, broadcast: Broadcast) -> Array:
        """How often each item's rating is that of each rated one, up to a factor per item.

        exp((cos − 1)/temperature − (difference of averages)²/2 width²): 1 for twins. Ours: a softened nearest.
        """
        features, settings = broadcast.features, self.settings
        xp, averages = namespace(features), like(broadcast.public.averages(), features)
        cosines = similarity_matrix(rows_of(features, items), rows_of(features, rated))
        apart = (rows_of(averages, items)[..., None] - rows_of(averages, rated)[..., None, :]) / settings.width
        weights = xp.exp((cosines - 1.0) / settings.temperature - 0.5 * apart**2)
        return xp.where((rated >= 0)[..., None, :], weights, 0.0)  # type: ignore[no-any-return]
