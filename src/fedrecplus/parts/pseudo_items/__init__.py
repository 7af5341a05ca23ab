"""Which unrated items a client uploads too."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

import numpy as np

from fedrecplus.arrays import Items
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.part import Part
from fedrecplus.parts.pseudo_items._sets import Count, SetSettings, candidates, in_wholes, size_class
from fedrecplus.protocol import Broadcast, PublicItems

__all__ = ["Count", "Items", "PseudoItems", "SetSettings", "candidates", "in_wholes", "size_class"]

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
