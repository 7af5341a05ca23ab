"""Rated items are in every upload; pseudo items that are drawn anew are not."""

from __future__ import annotations

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.settings import Settings


class Intersection(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the client's last upload: in how many of its uploads each row was."""
        sent = transcript.uploads(client)
        if not sent:
            return ()
        times = np.bincount(
            np.concatenate([one.upload.items for one in sent]), minlength=len(transcript.public.popularity)
        )
        last = sent[-1]
        items = last.upload.items
        return (Guess(last.round, items, silent(items), times[items] / len(sent)),)
