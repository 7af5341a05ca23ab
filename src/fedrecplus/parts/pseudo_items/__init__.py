"""Which unrated items a client uploads too."""

from __future__ import annotations

import functools
import importlib
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import (
    NOTHING,
    Array,
    Items as Items,
    cumulative,
    like,
    marked,
    namespace,
    numbers,
    own_values,
    places_of,
    subkey,
    uniform,
)
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.part import Part
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.settings import Annotated, Settings, number, text

Count = int | Items
"""of one client, or of each of many"""
PATIENCE = 16
"""after this many draws per item, the rest is drawn uniformly: a client may have rated all that is popular"""
_SMALLEST_CLASS = 16
_CLASSES_PER_DOUBLING = 3


class SetSettings(Settings):
    """Options that every rule has which gives pseudo items."""

    ratio: Annotated[float, number(0, 1e6, "ρ, pseudo items per rated item")] = 1.0
    redraw: Annotated[bool, text("draw a new set each round (FedRec) instead of keeping the first one")] = False
    size_classes: Annotated[bool, text("pad uploads with pseudo items to a size class, to hide |I_u|")] = False


D = TypeVar("D", bound=SetSettings)


class PseudoItems(Part[D]):
    """A client's set of unrated items among which the rated ones hide."""

    kind: ClassVar[str] = "pseudo_items"
    label: ClassVar[str] = "pseudo item rule"
    HIDES: ClassVar[bool] = True
    """whether there are any at all"""
    ATTACKER: ClassVar[OfPseudoItems | None] = None
    """what an attacker who knows the rule may assume of it; None: whatever serves the attacker best"""

    @abstractmethod
    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """``count`` unrated items, ascending, each once; of many clients, a line for each with −1 after the last."""

    def extra_rows(self, public: PublicItems) -> tuple[Items, int]:
        """Items of which everybody sees why an upload with one of them has more rows, and how many more."""
        return np.empty(0, dtype=np.int64), 0

    def public_groups(self, public: PublicItems) -> Items | None:
        """The group of each item, where whole public groups are uploaded. For attackers."""
        return None

    @property
    def whole_rows(self) -> int:
        """Rows that only come together: size classes are filled by so many at a time."""
        return 1

    @property
    def ratio(self) -> float:
        """ρ; 0 where there are no pseudo items."""
        return self.settings.ratio if self.HIDES else 0.0

    def count(self, rated: int, items: int, extra: int = 0) -> int:
        """How many pseudo items a client with this many ratings has: ρ|I_u|, more to fill a size class.

        ``extra`` are rows beyond those, of which everybody sees why they are there (``extra_rows``).

        >>> PseudoItems.choose("random", size_classes=True).count(20, 1000)
        21
        """
        if not self.HIDES or rated == 0:
            return 0
        wanted = round(self.settings.ratio * rated)
        if self.settings.size_classes:
            wanted = in_wholes(size_class(rated + wanted), self.whole_rows) - rated
        return min(wanted + extra, items - rated)


def in_wholes(rows: int, together: int) -> int:
    """The fewest rows from ``rows`` on that are a multiple of those that come together.

    >>> in_wholes(41, 2), in_wholes(41, 1)
    (42, 41)
    """
    return -(-rows // together) * together


def size_class(rows: int) -> int:
    """The smallest size class that holds so many rows: 16, 21, 26, 32, 41, 51, 64, …

    Ours: the exact number of rows would tell how many items a client rated.
    """
    size, number_of_class = _SMALLEST_CLASS, 0
    while size < rows:
        number_of_class += 1
        size = math.ceil(_SMALLEST_CLASS * 2.0 ** (number_of_class / _CLASSES_PER_DOUBLING) - 1e-9)
    return size


def draw_unrated(count: Count, rated: Items, items: int, key: Any, shares: Array | None = None) -> Items:
    """The first ``count`` different unrated items in a keyed sequence of draws, ascending.

    Draw n is uniform(key, n), which falls on an item by cumulative ``shares``, or on each as likely; rated items and
    repetitions are passed over. If no more than ``count`` items are unrated, all of them are taken. Ours: O(count)
    draws, where ranking all items would take O(items).
    """
    if isinstance(rated, np.ndarray) and rated.ndim > 1:
        shares = np.zeros(0) if shares is None else shares
        return by_kernel(kernels().draw_unrated, count, rated, items, key, shares, PATIENCE)
    xp, unrated, wanted = candidates(count, rated, items)
    chosen = unrated & (wanted == xp.sum(unrated, axis=-1))[..., None]
    width, drawn = int(xp.max(wanted)), 0
    while bool(xp.any(missing := wanted - xp.sum(chosen, axis=-1))):
        draws = numbers(np.arange(drawn, drawn + 2 * width + 16), rated)
        drawn += len(draws)
        fallen = fall_on(draws, uniform(key, draws), items, shares)
        fresh = first_of_each(fallen) & own_values(unrated & ~chosen, fallen)
        fresh &= cumulative(fresh) <= missing[..., None]
        chosen = chosen | marked(xp.where(fresh, fallen, NOTHING), items)
    return places_of(chosen, width)


def fall_on(draws: Items, units: Array, items: int, shares: Array | None) -> Items:
    """The item that each draw falls on: after many draws as likely on each, whatever the shares."""
    xp = namespace(units)
    evenly = xp.astype(units * items, xp.int64)
    if shares is None:
        return evenly  # type: ignore[no-any-return]
    places = xp.searchsorted(like(shares, units), units, side="right")
    return xp.where(draws < PATIENCE * items, places, evenly)  # type: ignore[no-any-return]


def first_of_each(values: Items) -> NDArray[np.bool_]:
    """Which values of (…, n) have not come before.

    >>> first_of_each(np.array([3, 1, 3, 3, 2])).tolist()
    [True, True, False, False, True]
    """
    xp = namespace(values)
    order = xp.argsort(values, axis=-1, stable=True)
    ascending = own_values(values, order)
    new = xp.concat([ascending[..., :1] >= 0, ascending[..., 1:] != ascending[..., :-1]], axis=-1)
    return own_values(new, xp.argsort(order, axis=-1))


def candidates(count: Count, rated: Items, items: int) -> tuple[Any, NDArray[np.bool_], Items]:
    """The namespace, each client's unrated items, and how many of them are asked for."""
    unrated = ~marked(rated, items)
    xp = namespace(unrated)
    return xp, unrated, xp.minimum(numbers(count, rated), xp.sum(unrated, axis=-1))


@functools.cache
def kernels() -> Any:
    """Compiled for batches of clients: imported when there are many, since a node's start can't wait for numba."""
    return importlib.import_module("fedrecplus.parts.pseudo_items._kernels")


def by_kernel(kernel: Callable[..., None], count: Count, rated: Items, items: int, *more: Any) -> Items:
    """What a kernel chooses for a batch of clients, ascending."""
    wanted = np.asarray(count)
    if wanted.max(initial=0) > items - rated.shape[-1]:  # somebody may have rated too many
        wanted = np.minimum(count, items - np.count_nonzero(rated >= 0, axis=-1))
    chosen = np.full((len(rated), int(wanted.max(initial=0))), items)
    kernel(wanted, rated, items, *more, chosen)
    chosen.sort(axis=-1)
    chosen[chosen == items] = NOTHING
    return chosen


def set_key(secret: Any, settings: SetSettings, round_number: int) -> Any:
    """The key of a client's set: of the round where sets are drawn anew, the same for good where they are kept."""
    return subkey(secret, "pseudo-items", round_number if settings.redraw else 0)
