"""Genres and year where there is a catalogue, and how popular an item is: for any data, before any training."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.encoder import Encoder
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings as _Settings


class Settings(_Settings):
    """Options of the encoder."""

    bands: ClassVar[int] = 8
    """bands of popularity that an item belongs to more or less"""
    popularity_weight: ClassVar[float] = 1.0
    """weight of popularity beside content"""


class Public(Encoder[Settings]):
    """Content and popularity."""

    def encode(self, V: Array, public: PublicItems) -> Array:
        """E = unit content features beside soft memberships in popularity bands.

        Ours: pseudo items that are as popular as the rated ones; content alone picks obscure items of the right genre.
        """
        level = np.log1p(public.popularity.astype(np.float64))
        centres = np.linspace(level.min(), level.max() + 1e-9, self.settings.bands)
        width = centres[1] - centres[0]
        bands = np.exp(-0.5 * ((level[:, None] - centres) / width) ** 2)
        return np.hstack([unit_rows(public.content), self.settings.popularity_weight * unit_rows(bands)])
