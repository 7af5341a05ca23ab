"""A small encoder that the server trains on public things: the item table explained by the catalogue.

A ridge regression predicts each item's factors from its content. An item with many ratings keeps its own factors; one
with few is moved towards what its content says.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings as _Settings

_RIDGE = 1.0


class Settings(_Settings):
    """Options of the encoder."""

    prior_strength: ClassVar[float] = 20.0
    """ratings at which an item is half its own factors"""


class Learned(Encoder[Settings]):
    """V, and what content predicts of it."""

    def encode(self, V: Array, public: PublicItems) -> Array:
        """E = (n V + t C W) / (n + t), W the ridge solution of V ≈ C W weighted by ratings n, all centred.

        Ours: likeness in the tail of the catalogue, where V is mostly noise.
        """
        trust = public.popularity / (public.popularity + self.settings.prior_strength)
        total = max(trust.sum(), 1e-12)
        centred = V - (trust @ V) / total
        if public.content.shape[1] == 0:
            return np.asarray(trust[:, None] * centred + 1e-3 * centred)
        content = public.content - (trust @ public.content) / total
        gram = content.T @ (trust[:, None] * content) + _RIDGE * np.eye(content.shape[1])
        W = np.linalg.solve(gram, content.T @ (trust[:, None] * centred))
        return np.asarray(trust[:, None] * centred + (1.0 - trust[:, None]) * (content @ W))
