"""Genres and year where there is a catalogue, and how popular an item is: for any data, before any training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.encoder import Encoder
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as _Settings


class Settings(_Settings):
    """Options of the encoder."""

    bands: Annotated[int, number(2, 64, "bands of popularity that an item belongs to more or less")] = 8
    popularity_weight: Annotated[float, number(0, 100, "weight of popularity beside content")] = 1.0


class Public(Encoder[Settings]):
    """Content and popularity."""

    def encode(self, V: NDArray[np.float64], public: PublicItems) -> NDArray[np.float64]:
        """E = unit content features beside soft memberships in popularity bands.

        Ours: pseudo items that are as popular as the rated ones; content alone picks obscure items of the right genre.
        """
        level = np.log1p(public.popularity.astype(np.float64))
        centres = np.linspace(level.min(), level.max() + 1e-9, self.settings.bands)
        width = centres[1] - centres[0]
        bands = np.exp(-0.5 * ((level[:, None] - centres) / width) ** 2)
        return np.hstack([unit_rows(public.content), self.settings.popularity_weight * unit_rows(bands)])
