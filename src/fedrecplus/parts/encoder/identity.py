"""The item factors as they are. Weak: rows share a large common part, so cosines crowd near 1."""

from __future__ import annotations

from fedrecplus.arrays import Array
from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings


class Identity(Encoder[Settings]):
    """V itself."""

    def encode(self, V: Array, public: PublicItems) -> Array:
        """E = V. Paper: Section "Feature similarity for pseudo items" """
        return V
