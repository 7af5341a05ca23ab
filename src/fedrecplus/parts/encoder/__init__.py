"""Features of items, by whose cosine pseudo items and virtual ratings are chosen."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from fedrecplus.arrays import Array
from fedrecplus.parts.part import Part, S
from fedrecplus.protocol import PublicItems


class Encoder(Part[S]):
    """A row of features for every item."""

    kind: ClassVar[str] = "encoder"
    label: ClassVar[str] = "encoder"

    @abstractmethod
    def encode(self, V: Array, public: PublicItems) -> Array:
        """A row of features per item, from what everybody knows."""
