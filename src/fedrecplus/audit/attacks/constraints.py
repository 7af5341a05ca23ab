"""Exact counts and sums per item, all uploads together: who can have rated an item, if so many did, and with that sum.

Public popularity says how many of an item's uploaders rated it, and the public average what their ratings add up to.
With the ratings that uploads show, and what the sets of rows say beforehand, few answers are left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.attacks._maximum_entropy import Cells, Totals, log_odds
from fedrecplus.audit.attacks._prior import prior
from fedrecplus.audit.attacks._reading import rated_share, together
from fedrecplus.audit.guess import Guess
from fedrecplus.audit.transcript import Transcript, hides_rows

SEES = ("values", "lists")
Array = NDArray[np.float64]
_COMPLETE = 0.9
"""share of the counted ratings that the noted uploads must have room for: else counts are of other people, too"""


def attack(transcript: Transcript, client: int) -> tuple[Guess, ...]:
    """Of the upload that was noted of everybody: log odds of each row, given all that is known of items and clients."""
    if not hides_rows(transcript.config) or client not in transcript.crowd:
        return ()
    cells, odds = transcript.once("constraints", lambda: _solved(transcript))
    own = cells.client == list(transcript.crowd).index(client)
    return (Guess(transcript.rounds[0], cells.item[own], cells.rating[own], odds[own]),)


def _solved(transcript: Transcript) -> tuple[Cells, Array]:
    sets = transcript.crowd
    cells = Cells(
        client=np.repeat(np.arange(len(sets)), [len(items) for items in sets.values()]),
        item=np.concatenate(list(sets.values())),
        rating=np.concatenate([_ratings(transcript, client) for client in sets]),
        prior=np.concatenate([prior(transcript, client, items) for client, items in sets.items()]),
    )
    rated = np.array([rated_share(transcript, len(items)) * len(items) for items in sets.values()])
    counts, sums = transcript.public.popularity.astype(np.float64), item_sums(transcript)
    if rated.sum() < _COMPLETE * counts.sum():
        counts, sums = counts * rated.sum() / counts.sum(), np.full(len(counts), np.nan)
    return cells, log_odds(cells, Totals(counts, sums, rated))


def item_sums(transcript: Transcript) -> Array:
    """Each item's sum of ratings, as its public average tells; nan where there is none.

    An average that is damped by pseudo-ratings at the mean of all is undone: the strength is whatever puts most sums on
    the scale of ratings.
    """
    public, step = transcript.public, transcript.step
    if not len(public.average):
        return np.full(len(public.popularity), np.nan)
    best, least = np.zeros(0), np.inf
    for strength in (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0):
        sums = public.average * (public.popularity + strength) - strength * public.mean
        off = np.abs(sums / step - np.rint(sums / step))[public.popularity > 0].mean()
        if off < least - 1e-9:
            best, least = sums, float(off)
    return np.asarray(best)


def _ratings(transcript: Transcript, client: int) -> Array:
    """The ratings that a client's noted upload shows; nan where values are hidden or unread."""
    sent = transcript.crowd_sent.get(client)
    if sent is None:
        return np.full(len(transcript.crowd[client]), np.nan)
    return together(transcript, (sent,))[0].nearest(transcript.step)
