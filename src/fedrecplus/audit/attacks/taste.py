"""Years and genres: what a client likes shows in its whole upload, and rated rows fit in better than pseudo rows do.

Needs no uploaded value, only the catalogue and which rows everybody uploads. Half of an upload is rated, so its mean
leans to what the client likes; and clients differ by much more than chance in some directions of the catalogue (old or
new films, say) and hardly in others, which the crowd's uploads show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.settings import Settings

_RIDGE = 1e-3


@dataclass(frozen=True)
class Tastes:
    """How rows differ within uploads, and how uploads differ."""

    features: Array
    """of every item, less the mean over all uploaded rows"""
    within: Array
    """covariance of the rows of one upload"""
    between: Array
    """covariance of the clients' own means, chance taken off"""


class Taste(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the first upload: how well each row fits what the others say about the client's taste."""
        sent = transcript.uploads(client)[:1]
        return tuple(
            Guess(one.round, one.upload.items, silent(one.upload.items), fit(transcript, one.upload.items))
            for one in sent
        )


def fit(transcript: Transcript, items: Items) -> Array:
    """log P(row | client) − log P(row | anybody), rows and clients' means being normal; the row itself is left out.

    The client's mean is the other rows' mean, shrunk as far as so many rows ask for. After: Prince, Elder 2007 (PLDA)
    """
    source = transcript.source
    tastes = source.once("tastes", lambda: _learned(source))
    n, wide = len(items), tastes.features.shape[1]
    if n < 2 or wide == 0:
        return np.zeros(n)
    rows = tastes.features[items]
    others = (rows.sum(axis=0) - rows) / (n - 1)
    shrunk = others @ np.linalg.solve(tastes.between + tastes.within / (n - 1), tastes.between)
    pull = np.linalg.solve(tastes.within, shrunk.T).T
    score: Array = (pull * (rows - 0.5 * shrunk)).sum(axis=1)
    return score


def _learned(transcript: Transcript) -> Tastes:
    public = transcript.public
    features = np.hstack([public.content, _bands(public.years, len(public.popularity))])
    sets = [items for items in transcript.crowd.values() if len(items) > 1]
    if features.shape[1] == 0 or not sets:
        return Tastes(features[:, :0], np.zeros((0, 0)), np.zeros((0, 0)))
    sizes = np.array([len(items) for items in sets], dtype=np.float64)
    uploaded = np.bincount(np.concatenate(sets), minlength=len(features)).astype(np.float64)
    features = features - uploaded @ features / uploaded.sum()
    within = (features * uploaded[:, None]).T @ features / uploaded.sum()
    within += _RIDGE * max(float(np.trace(within)) / len(within), 1e-9) * np.eye(len(within))
    means = np.stack([features[items].mean(axis=0) for items in sets])
    spread = (means * sizes[:, None]).T @ means / sizes.sum() - within * len(sets) / sizes.sum()
    values, vectors = np.linalg.eigh(spread)
    return Tastes(features, within, (vectors * np.maximum(values, 0.0)) @ vectors.T)


def _bands(years: NDArray[np.int64], items: int) -> Array:
    """A column per year, those next to it softly included; none where years aren't known."""
    known = np.unique(years[years > 0])
    if len(known) == 0:
        return np.zeros((items, 0))
    near = np.exp(-0.5 * (years[:, None] - known).astype(np.float64) ** 2)
    return np.where((years > 0)[:, None], near, 0.0)
