"""User averages in the first rounds, then predictions from a U trained a little longer on the real ratings."""

from __future__ import annotations

from typing import ClassVar

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings
from fedrecplus.parts.virtual_ratings.user_average import UserAverage
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Annotated, number


class Settings(FillSettings):
    """Options of the rule."""

    predict_after: Annotated[int, number(0, 10**9, "T_predict, rounds of user averages before predictions")] = 10
    local_steps: ClassVar[int] = 10
    """T_local, extra user steps on real ratings before predicting, as published"""


class Hybrid(VirtualRatings[Settings]):
    """Averages, then predictions."""

    ATTACKER = OfVirtualRatings(residual=1.5)

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """User average while t ≤ T_predict, then U'·V, U' being U after T_local more steps with V fixed.

        After: Lin, Pan, Ming 2020 (FedRec), hybrid filling
        """
        if broadcast.round < self.settings.predict_after:
            return UserAverage().fill(items, device, broadcast, predict)
        return predict(items, self.settings.local_steps)
