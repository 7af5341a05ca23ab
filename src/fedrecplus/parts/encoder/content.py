"""Genres and year: known before any training, so a set drawn in the first round can mean something."""

from __future__ import annotations

from fedrecplus.arrays import Array
from fedrecplus.errors import UserError
from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Settings


class Content(Encoder[Settings]):
    """What the catalogue says."""

    def encode(self, V: Array, public: PublicItems) -> Array:
        """E = catalogue features. Ours: before training V is noise, and likeness must come from elsewhere."""
        if public.content.shape[1] == 0:
            raise UserError(
                "encoder.rule = 'content' needs titles, genres or years, and these ratings come without",
                "set encoder.rule=centred (features from V) or pseudo_items.rule=popular",
            )
        return public.content
