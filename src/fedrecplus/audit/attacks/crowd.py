"""Items that people rate together: rated rows fit in with the rest of the upload, drawn ones less, copied ones more.

The server sees which rows everybody uploads. A regression of each item on all others, learned from these sets alone,
says how likely an item is beside the upload's other rows. Pseudo rows dilute what is learned, no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.audit.item_regression import KnownSets
from fedrecplus.settings import Settings

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


def co_occurrence(transcript: Transcript, client: int, items: Items) -> CoOccurrence:
    """The regression over all uploads but this client's own."""
    source = transcript.source
    crowd, origin, every = source.crowd, transcript.origin(client), len(source.public.popularity)
    uploaded = np.bincount(np.concatenate([*crowd.values(), items[:0]]), minlength=every)[items]
    rated = np.log1p(transcript.public.popularity[items]) - np.log1p(uploaded)
    if origin not in crowd or len(crowd) < 3:
        return CoOccurrence(np.zeros(len(items)), np.zeros(len(items)), rated)
    known = source.once("crowd", lambda: KnownSets.learned(crowd, every, _RIDGE))
    likely = known.likely(items, np.ones(len(items)), origin)
    return CoOccurrence(likely, likely / (uploaded / len(crowd) + _RARE), rated)
