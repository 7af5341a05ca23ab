"""The model's own prediction: a pseudo item then pulls V nowhere but towards zero."""

from __future__ import annotations

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast


class Predicted(VirtualRatings[FillSettings]):
    """What the model says."""

    ATTACKER = OfVirtualRatings(residual=1.5)

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """r' = U·V. After: Lin, Pan, Ming 2020 (FedRec), hybrid filling without its extra local steps."""
        return predict(items)
