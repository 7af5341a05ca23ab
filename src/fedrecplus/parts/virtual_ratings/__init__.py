"""Which ratings pseudo items get."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

import numpy as np

from fedrecplus.arrays import Array as Array, Items as Items
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.part import Part
from fedrecplus.parts.virtual_ratings._scale import (
    FillSettings as FillSettings,
    Predict as Predict,
    kept_round as kept_round,
    put_on_scale as put_on_scale,
)
from fedrecplus.protocol import Broadcast

F = TypeVar("F", bound=FillSettings)


class VirtualRatings(Part[F]):
    """What a client claims to have given its pseudo items."""

    kind: ClassVar[str] = "virtual_ratings"
    label: ClassVar[str] = "virtual rating rule"
    ATTACKER: ClassVar[OfVirtualRatings | None] = None
    """what an attacker who knows the rule may assume of it; None: whatever serves the attacker best"""

    @abstractmethod
    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        """A rating for each item (…, n) in standard units; ``predict`` are the clients' own predictions."""

    @property
    def draws_copies(self) -> bool:
        """Whether ratings are drawn of the client's own."""
        return type(self).copy_weights is not VirtualRatings.copy_weights

    def copy_weights(self, items: Items, rated: Items, broadcast: Broadcast) -> Array:
        """How often each item's rating is that of each rated one, up to a factor per item. For attackers."""
        return np.zeros((len(items), len(rated)))
