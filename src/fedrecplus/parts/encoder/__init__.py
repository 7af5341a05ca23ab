"""Features of items, by whose cosine pseudo items and virtual ratings are chosen."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.part import Part, S
from fedrecplus.protocol import PublicItems


class Encoder(Part[S]):
    """A row of features for every item."""

    kind: ClassVar[str] = "encoder"
    label: ClassVar[str] = "encoder"

    @abstractmethod
    def encode(self, V: NDArray[np.float64], public: PublicItems) -> NDArray[np.float64]:
        """A row of features per item, from what everybody knows."""
