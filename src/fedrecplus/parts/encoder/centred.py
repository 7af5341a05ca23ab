"""The item factors less their mean: cosines then tell items apart."""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings


class Centred(Encoder[Settings]):
    """V less its mean."""

    def encode(self, V: Array, public: PublicItems) -> Array:
        """E = V − mean(V). Ours: the common part says nothing about likeness."""
        return np.asarray(V - V.mean(axis=0))
