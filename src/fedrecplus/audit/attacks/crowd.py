"""Items that people rate together: rated rows fit in with the rest of the upload, drawn ones less, copied ones more.

The server sees which rows everybody uploads. A regression of each item on all others, learned from these sets alone,
says how likely an item is beside the upload's other rows. Pseudo rows dilute what is learned, no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fedrecplus.audit.attacks import Attack
from fedrecplus.audit.guess import Guess, silent
from fedrecplus.audit.item_regression import ItemRegression
from fedrecplus.audit.transcript import Transcript
from fedrecplus.settings import Settings

Array = NDArray[np.float64]
_RIDGE = 1.0
"""weight decay per upload that is learned from"""
_RARE = 0.02


class Crowd(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the first upload: how likely each row is, given the others. No uploaded value is looked at."""
        sent = transcript.uploads(client)[:1]
        return tuple(
            Guess(one.round, one.upload.items, silent(one.upload.items), _score(transcript, client)) for one in sent
        )


def _score(transcript: Transcript, client: int) -> Array:
    found = co_occurrence(transcript, client, transcript.uploads(client)[0].upload.items)
    fits = fitting(transcript, found)
    return fits if public_groups(transcript) is None else ranks(fits) + ranks(found.share)


def fitting(transcript: Transcript, found: CoOccurrence) -> Array:
    """What of the co-occurrence says that a row is rated, by the scheme's rule."""
    if public_groups(transcript) is not None:
        # items of one group come together in every upload: what is left is which groups a client has rated nothing in
        return found.likely
    # items chosen for their likeness to the others come together in many uploads: more than those people choose
    return {"rated": found.likely, "pseudo": -found.likely, "neither": found.lift}[
        transcript.assumed.pseudo_items.co_occurrence
    ]


def public_groups(transcript: Transcript) -> NDArray[np.int64] | None:
    """The group of each item where the rule uploads whole public groups."""
    return transcript.config.pseudo_items.public_groups(transcript.public)


def ranks(values: Array) -> Array:
    """Places from 0 to 1; ties share theirs."""
    return np.asarray((rankdata(values) - 0.5) / max(len(values), 1))


@dataclass(frozen=True)
class CoOccurrence:
    """How well each row of an upload fits in with the others."""

    likely: Array
    """regression of the item on the other rows"""
    lift: Array
    """the same over the item's share of all uploads"""
    share: Array
    """how often the item is rated over how often it is uploaded: both are known"""


def co_occurrence(transcript: Transcript, client: int, items: NDArray[np.int64]) -> CoOccurrence:
    """The regression over all uploads but this client's own."""
    source = transcript.source
    regression, share = source.once("crowd", lambda: _learned(source))
    uploads = len(source.crowd)
    rated = np.log1p(transcript.public.popularity[items]) - np.log1p(uploads * share[items])
    own = transcript.crowd.get(transcript.origin(client))
    if own is None or uploads < 3:
        return CoOccurrence(np.zeros(len(items)), np.zeros(len(items)), rated)
    removed = np.zeros(len(share))
    removed[own] = 1.0
    likely = regression.likely(items, np.ones(len(items)), removed)
    return CoOccurrence(likely, likely / (share[items] + _RARE), rated)


def _learned(transcript: Transcript) -> tuple[ItemRegression, Array]:
    """The regression over all uploads, and items' shares of uploads."""
    X = np.zeros((len(transcript.crowd), len(transcript.public.popularity)))
    for row, items in enumerate(transcript.crowd.values()):
        X[row, items] = 1.0
    return ItemRegression.of(X, _RIDGE), X.mean(axis=0)
