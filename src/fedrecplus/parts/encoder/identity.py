"""The item factors as they are. Weak: rows share a large common part, so cosines crowd near 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings


class Identity(Encoder[Settings]):
    """V itself."""

    def encode(self, V: NDArray[np.float64], public: PublicItems) -> NDArray[np.float64]:
        """E = V. Paper: Section "Feature similarity for pseudo items" """
        return V
