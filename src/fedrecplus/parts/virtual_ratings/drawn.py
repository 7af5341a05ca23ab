"""One of the client's own ratings, drawn, those of similar items more often: on the scale, and never surely a copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.similarity import similarity
from fedrecplus.parts.virtual_ratings import FillSettings, Predict, VirtualRatings, kept_round
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import subkey, uniform
from fedrecplus.settings import Annotated, number


class Settings(FillSettings):
    """Options of the rule."""

    temperature: Annotated[float, number(1e-6, 1e3, "of the cosine: 0 would be the nearest item's rating")] = 0.2
    width: Annotated[float, number(1e-6, 1e3, "of what counts as the same public average, in standard units")] = 0.25


class Drawn(VirtualRatings[Settings]):
    """A softened nearest."""

    NEEDS = frozenset({"features", "averages"})
    ATTACKER = OfVirtualRatings(residual=0.0, copied="drawn")

    def fill(
        self, items: NDArray[np.int64], device: Device, broadcast: Broadcast, predict: Predict
    ) -> NDArray[np.float64]:
        """r'_j = r_i for a rated i drawn with probability ∝ exp(cos/temperature − (difference of averages)²/2 width²).

        Ours: virtual ratings spread like the client's real ones around what everybody expects of an item, they are on
        the scale by themselves, and only likely, not certain, to equal a neighbour's.
        """
        shares = np.cumsum(self.copy_weights(items, device.items, broadcast), axis=1)
        key = subkey(device.secret, "drawn", kept_round(self.settings, broadcast.round))
        draws = uniform(key, items)[:, None] * shares[:, -1:]
        places = np.minimum((shares <= draws).sum(axis=1), len(device.items) - 1)
        return np.asarray(device.ratings[places])

    def copy_weights(
        self, items: NDArray[np.int64], rated: NDArray[np.int64], broadcast: Broadcast
    ) -> NDArray[np.float64]:
        """How often each item's rating is that of each rated one, up to a factor per item. Ours: see ``softened``."""
        averages = broadcast.public.averages()
        cosines = similarity(broadcast.features[items], broadcast.features[rated])
        return softened(cosines, averages[items], averages[rated], self.settings)


def softened(
    cosines: NDArray[np.float64],
    averages: NDArray[np.float64],
    rated_averages: NDArray[np.float64],
    settings: Settings,
) -> NDArray[np.float64]:
    """exp((cos − 1)/temperature − (difference of averages)²/2 width²): 1 for twins. Ours: a softened nearest."""
    apart = (averages[:, None] - rated_averages) / settings.width
    return np.asarray(np.exp((cosines - 1.0) / settings.temperature - 0.5 * apart**2))
