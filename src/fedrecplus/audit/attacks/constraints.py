"""Exact counts and sums per item, all uploads together: who can have rated an item, if so many did, and with that sum.

Public popularity says how many of an item's uploaders rated it, and the public average what their ratings add up to.
With the ratings that uploads show, and what the sets of rows and the shadow classifier say beforehand, few answers are
left: all evidence of one model together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.special import expit

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript, shadow
from fedrecplus.audit.attacks._maximum_entropy import Cells, Totals, log_odds
from fedrecplus.audit.attacks._prior import against_group, prior, rated_of_uploaded, standard
from fedrecplus.audit.attacks._reading import in_rows_of, rated_share, together
from fedrecplus.audit.item_regression import ItemRegression
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Annotated, Settings as _Settings, number, text

_SHADOW = 0.5
"""how much the shadow classifier counts, of what it says beyond how often an item is rated: chosen on ML-100K with the
truth in view, as the weights of the sets are"""
_SURE = 8.0
"""log odds of the classifier at most"""
_RIDGE = 0.3
"""weight decay per person, of the regression on probable ratings"""
_FITS, _FITS_IN_GROUP = 0.2, 0.45
"""log odds per standard deviation of what that regression says: chosen on people who aren't attacked"""
_COMPLETE = 0.9
"""share of the counted ratings that the noted uploads must have room for: else counts are of other people, too"""


class Settings(_Settings):
    """Options of the attack."""

    evidence: Annotated[
        Literal["sets", "all"], text("what goes in beforehand: the sets of rows alone, or the shadow classifier, too")
    ] = "all"
    turns: Annotated[
        int, number(0, 5, "how often what goes together is learned again, from what everybody has probably rated")
    ] = 0


class Constraints(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the upload that was noted of everybody: log odds of each row, given all that is known."""
        if not transcript.config.hides_rows or client not in transcript.crowd:
            return ()
        key = ("constraints", transcript.assumed, self.settings.evidence, self.settings.turns)
        cells, odds = transcript.once(key, lambda: _solved(transcript, self.settings))
        own = cells.client == list(transcript.crowd).index(client)
        return (Guess(transcript.rounds[0], cells.item[own], cells.rating[own], odds[own]),)


def _solved(transcript: Transcript, settings: Settings) -> tuple[Cells, Array]:
    cells, totals = _known(transcript)
    prior = cells.prior
    if settings.evidence == "all":
        usual = rated_of_uploaded(transcript)[cells.item]
        prior = prior + _SHADOW * (_by_shadow(transcript, cells, usual) - usual)
    odds = log_odds(replace(cells, prior=prior), totals)
    for _ in range(settings.turns):
        odds = log_odds(replace(cells, prior=prior + _company(transcript, cells, odds)), totals)
    return cells, odds


def _company(transcript: Transcript, cells: Cells, odds: Array) -> Array:
    """How well each row fits in with what its client has probably rated, by what goes together in everybody's answers.

    Uploads are half pseudo rows; the answers so far are less so. Ours: expectation and maximisation in turns.
    """
    chance = expit(odds)
    X = np.zeros((len(transcript.crowd), len(transcript.public.popularity)))
    X[cells.client, cells.item] = chance
    regression, found = ItemRegression.of(X, _RIDGE), np.zeros(len(odds))
    for number_of_client, row in enumerate(X):
        own = np.flatnonzero(cells.client == number_of_client)
        items = cells.item[own]
        fits = regression.likely(items, chance[own], row)
        within = against_group(transcript, items, fits)
        found[own] = _FITS * standard(fits) + _FITS_IN_GROUP * standard(within)
    return found


def _by_shadow(transcript: Transcript, cells: Cells, usual: Array) -> Array:
    """The classifier's log odds of the watched clients' rows; of all others, how often their items are rated."""
    found, numbers = usual.copy(), {client: number for number, client in enumerate(transcript.crowd)}
    for client in transcript.clients:
        for guess in shadow.Shadow().attack(transcript, client) if client in numbers else ():
            own = np.flatnonzero(cells.client == numbers[client])
            said = np.clip(in_rows_of(cells.item[own], guess.items, guess.rated), -_SURE, _SURE)
            found[own] = np.where(np.isfinite(said), said, found[own])
    return found


def _known(transcript: Transcript) -> tuple[Cells, Totals]:
    """Everybody's rows with what their sets say of them, and the counts and sums that they must add up to.

    How many of a client's rows are rated is guessed; all clients' together are as many as items have ratings.
    """
    sets = transcript.crowd
    cells = Cells(
        client=np.repeat(np.arange(len(sets)), [len(items) for items in sets.values()]),
        item=np.concatenate(list(sets.values())),
        rating=np.concatenate([_ratings(transcript, client) for client in sets]),
        prior=np.concatenate([prior(transcript, client, items) for client, items in sets.items()]),
    )
    rated = np.array([rated_share(transcript) * len(items) for items in sets.values()])
    counts, sums = transcript.public.popularity.astype(np.float64), item_sums(transcript)
    if rated.sum() < _COMPLETE * counts.sum():
        counts, sums = counts * rated.sum() / counts.sum(), np.full(len(counts), np.nan)
    return cells, Totals(counts, sums, rated * counts.sum() / max(rated.sum(), 1.0))


def item_sums(transcript: Transcript) -> Array:
    """Each item's sum of ratings, as its public average tells; nan where there is none."""
    return sums_behind(transcript.public, transcript.step)


def sums_behind(public: PublicItems, step: float) -> Array:
    """Sums of ratings behind public averages.

    An average that is damped by pseudo-ratings at the mean of all is undone: the strength is whatever puts most sums on
    the scale of ratings.
    """
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
