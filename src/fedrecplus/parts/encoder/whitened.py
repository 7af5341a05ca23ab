"""The item factors centred and scaled alike in every direction: no direction drowns the others."""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings

_SMALLEST = 1e-6
"""directions with less than this share of the largest variance are noise and not blown up"""


class Whitened(Encoder[Settings]):
    """V with the same variance in every direction."""

    def encode(self, V: Array, public: PublicItems) -> Array:
        """E = (V − mean) Σ^(−1/2), the symmetric root. Ours: Mahalanobis angles between items."""
        centred = V - V.mean(axis=0)
        variances, directions = np.linalg.eigh(centred.T @ centred / len(V))
        scale = 1.0 / np.sqrt(np.maximum(variances, _SMALLEST * max(variances[-1], 1e-300)))
        return np.asarray(centred @ (directions * scale) @ directions.T)
