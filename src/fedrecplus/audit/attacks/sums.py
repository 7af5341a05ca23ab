"""The cohort's sums and public statistics: which items participants rate more than is public, and how well.

Says the same of everybody: sums over all name nobody. What it reads beyond its control is what one person's presence
does to the sums.
"""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._from_sums import rows_in_question
from fedrecplus.audit.attacks._solved import on_scale
from fedrecplus.settings import Settings

_RIDGE = 10.0
"""weight decay of the regression, in ratings"""


class SumsAlone(Attack[Settings]):
    """The attack."""

    SEES = ("sums",)

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of all items, by all recorded sums: the share of the weight behind each, and the best mean rating."""
        if not transcript.sums:
            return ()
        last, items = rows_in_question(transcript, client)
        share, ratings = transcript.once("sums", lambda: _learned(transcript))
        return (Guess(last, items, on_scale(ratings, transcript.step)[items], share[items]),)


def _learned(transcript: Transcript) -> tuple[Array, Array]:
    """Share of the weight, and public averages as far as a regression on mean updates and item columns finds them."""
    sums = list(transcript.sums.values())
    share = np.mean([one.weights / max(one.overall, 1e-300) for one in sums], axis=0)
    moved = np.mean([one.total / np.maximum(one.weights, 1e-9)[:, None] for one in sums], axis=0)
    X = np.hstack([np.ones((len(share), 1)), transcript.columns(transcript.rounds[-1]), moved])
    size = np.sqrt((X**2).mean(axis=0))
    X = X / np.where(size > 1e-12, size, np.inf)
    weight, average = transcript.public.popularity.astype(np.float64), transcript.public.averages()
    gram = (X * weight[:, None]).T @ X + _RIDGE * np.eye(X.shape[1])
    return share, np.asarray(X @ np.linalg.solve(gram, X.T @ (weight * average)))
