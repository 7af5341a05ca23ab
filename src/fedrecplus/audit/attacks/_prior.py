"""What sets alone say about a row, as log odds: what no made-up client can teach.

A made-up client has the tastes that its maker gives it. How much items that go together, years and genres tell about
real people can't be learned from it, so this is put in beforehand: made-up clients are drawn by it, and the classifier
learns what comes on top.
"""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks._reading import rated_share
from fedrecplus.audit.attacks.crowd import co_occurrence, fitting, public_groups
from fedrecplus.audit.attacks.taste import fit
from fedrecplus.audit.transcript import Transcript

_COMPANY, _TASTE, _TASTE_IN_GROUP = 0.2, 0.3, 0.2
"""log odds per standard deviation: areas of .56 to .58, about what each tells by itself on ML-100K"""
_SURE = 0.98


def prior(transcript: Transcript, client: int, items: Items) -> Array:
    """Log odds that a row is rated: how often its item is, and how well it fits in with the others and their taste."""
    fits, taste = fitting(transcript, co_occurrence(transcript, client, items)), fit(transcript, items)
    return np.asarray(
        rated_of_uploaded(transcript)[items]
        + _COMPANY * standard(fits)
        + _TASTE * standard(taste)
        + _TASTE_IN_GROUP * standard(against_group(transcript, items, taste))
    )


def against_group(transcript: Transcript, items: Items, values: Array) -> Array:
    """Each row less the mean of the other rows of its public group; all zero where there are no groups."""
    groups = public_groups(transcript)
    if groups is None:
        return np.zeros(len(items))
    group = np.unique(groups[items], return_inverse=True)[1]
    others = np.maximum(np.bincount(group)[group] - 1.0, 1.0)
    against: Array = values - (np.bincount(group, values)[group] - values) / others
    return against


def rated_of_uploaded(transcript: Transcript) -> Array:
    """Log odds of an item's being rated where it is uploaded: both numbers are public."""
    return transcript.source.once("rated of uploaded", lambda: _counted(transcript.source))


def _counted(transcript: Transcript) -> Array:
    rated = transcript.public.popularity.astype(np.float64)
    uploaded = np.zeros(len(rated))
    rows = 0.0
    for items in transcript.crowd.values():
        uploaded[items] += 1.0
        rows += rated_share(transcript) * len(items)
    # popularity may count more clients than were watched
    chance = np.clip((rated * rows / max(rated.sum(), 1.0) + 0.5) / (uploaded + 1.0), 1.0 - _SURE, _SURE)
    return np.asarray(np.log(chance / (1.0 - chance)))


def standard(values: Array) -> Array:
    """Mean 0 and standard deviation 1, within an upload."""
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-9))
