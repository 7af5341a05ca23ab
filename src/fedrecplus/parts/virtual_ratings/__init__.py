"""Which ratings pseudo items get."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Protocol, TypeVar

import numpy as np

from fedrecplus.arrays import Array as Array, Items as Items, namespace, subkey, uniform
from fedrecplus.data import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfVirtualRatings
from fedrecplus.parts.part import Part
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Annotated, Settings, text

TIE = 1e-9
"""a value this near to the middle of two levels is in the middle, and goes down in every engine"""


class FillSettings(Settings):
    """Options that every rule has."""

    rounding: Annotated[
        Literal["none", "nearest", "stochastic"], text("leave them as they are, or round them to the rating scale")
    ] = "none"
    refresh: Annotated[bool, text("compute them anew each round instead of keeping the first ones")] = True


class Predict(Protocol):
    """The client's own predictions for some items, after so many more user steps on its real ratings."""

    def __call__(self, items: Items, steps: int = 0) -> Array:
        """Predicted ratings in standard units."""


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


def put_on_scale(ratings: Array, items: Items, device: Device, settings: FillSettings, round_number: int) -> Array:
    """Clip to the scale's ends and, if asked, round to its levels.

    Stochastic rounding goes up with the probability that makes the mean right. Ours: a value off the scale tells the
    server that the item is not really rated.
    """
    xp = namespace(ratings)
    threshold: Array | float = 0.5
    clipped: Array = xp.clip(ratings, STANDARD_LOW, STANDARD_HIGH)
    if settings.rounding == "none":
        return clipped
    levels = xp.astype(clipped - STANDARD_LOW, xp.float64) / device.step
    if settings.rounding == "stochastic":
        threshold = uniform(subkey(device.secret, "rounding", kept_round(settings, round_number)), items)
    below = xp.floor(levels)
    rounded = below + (levels - below > threshold + TIE)
    return xp.clip(STANDARD_LOW + device.step * rounded, STANDARD_LOW, STANDARD_HIGH)  # type: ignore[no-any-return]


def kept_round(settings: FillSettings, round_number: int) -> int:
    """The round that draws are keyed by: always the first where virtual ratings are kept."""
    return round_number if settings.refresh else 0
