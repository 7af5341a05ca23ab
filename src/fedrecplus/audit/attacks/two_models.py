"""The same person in two models over catalogues whose counts differ a little: rated items are in both uploads.

A set that is drawn once for each model is drawn anew for each, where popularity has a say in it: pseudo items of one
model are often missing in the other. A device that keeps one set for all models leaves nothing to compare.
"""

from __future__ import annotations

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.audit.attacks._prior import prior
from fedrecplus.audit.attacks._reading import rated_share
from fedrecplus.settings import Annotated, Settings as _Settings, number

_LEAST, _MOST = 0.02, 0.995
_SURE = 0.999
"""probability that a rated item is in an upload"""


class Settings(_Settings):
    """Options of the attack."""

    models: Annotated[int, number(2, 5, "models that the person takes part in, the attacked one included")] = 2


class TwoModels(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the first upload: in how many other models' uploads each row is, beside what the sets of rows say."""
        sent, other = transcript.uploads(client)[:1], transcript.models[: self.settings.models - 1]
        if not sent or not other:
            return ()
        items = sent[0].upload.items
        score = prior(transcript, client, items)
        for sets in other:
            there = np.isin(items, sets[client])
            share = rated_share(transcript)
            drawn = np.clip((there.mean() - share) / max(1.0 - share, 1e-9), _LEAST, _MOST)
            score = score + np.where(there, np.log(_SURE / drawn), np.log((1.0 - _SURE) / (1.0 - drawn)))
        return (Guess(sent[0].round, items, silent(items), score),)
