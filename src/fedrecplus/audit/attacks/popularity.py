"""Popular items are more likely to be rated. Looks at no uploaded value, only at which rows came."""

from __future__ import annotations

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.settings import Settings


class Popularity(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Score = how often the item is rated by anybody."""
        popularity = transcript.public.popularity.astype(np.float64)
        uploads = (sent.upload.items for sent in transcript.uploads(client))
        rounds = (sent.round for sent in transcript.uploads(client))
        return tuple(
            Guess(t, items, silent(items), popularity[items]) for t, items in zip(rounds, uploads, strict=True)
        )
