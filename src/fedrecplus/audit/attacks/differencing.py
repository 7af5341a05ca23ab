"""Sums of cohorts that differ: a regression of each item's sums on who took part singles a person out.

The server knows who answered in which round. An item's weight in a round is the sum over its raters in the cohort, so
rounds with and without a person differ by what that person rated, and by everybody else who came or went. With as many
rounds as persons that is solved exactly; with fewer it is a likelihood ratio. Where no weights are sent, the sums of
updates still move more with a rater's presence than with another's. A cohort of one is an upload.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.audit.attacks._from_sums import read_single, rows_in_question
from fedrecplus.audit.attacks._presence import Presence
from fedrecplus.settings import Settings

_RIDGE = 1e-3
_BESIDE = 0.2
"""weight of what updates say beside weights: columns aren't independent, and V moves between rounds"""
_FLOOR = 1e-4
"""least variance of an estimate: weights are no whole numbers where clients weigh themselves"""


class Differencing(Attack[Settings]):
    """The attack."""

    SEES = ("sums",)

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of all items: log odds that the client rated it, by its presence in the recorded rounds."""
        alone = [t for t, cohort in transcript.cohorts.items() if cohort.tolist() == [client]]
        if alone and transcript.sums:
            return (read_single(transcript, client, alone[-1], transcript.sums[alone[-1]]),)
        if not transcript.sums:
            return ()
        last, items = rows_in_question(transcript, client)
        return (Guess(last, items, silent(items), log_odds(transcript, client)[items]),)


def log_odds(transcript: Transcript, client: int) -> Array:
    """How many rate each item, and what the client's presence says about its being one of them."""
    presence, factor = transcript.once("presence", lambda: _presence(transcript))
    column = presence.of(client)
    pull = scipy.linalg.cho_solve(factor, column)
    q, y = transcript.once("weights in sums", lambda: _weights(transcript, presence))
    known = np.log(q / (1.0 - q))
    return np.asarray(
        known + _by_weights(pull, column, presence, q, y) + _BESIDE * _by_updates(transcript, pull, column, presence)
    )


def _presence(transcript: Transcript) -> tuple[Presence, tuple[Array, bool]]:
    """Who was in which round, and the Cholesky factor of P Pᵀ."""
    presence = Presence.noted(list(transcript.cohorts.values()))
    P, people = presence.P, len(presence.clients)
    return presence, scipy.linalg.cho_factor(P @ P.T + _RIDGE * people * np.eye(len(P)))


def _weights(transcript: Transcript, presence: Presence) -> tuple[Array, Array]:
    """The share of clients that rate each item, and its weight by round, in units of a mean client's."""
    rounds = [transcript.sums[t] for t in transcript.cohorts]
    y = np.stack([one.weights * one.clients / max(one.overall, 1e-300) for one in rounds])
    return np.clip(y.sum(axis=0) / presence.P.sum(), 1e-6, 1.0 - 1e-6), y


def _by_weights(pull: Array, column: Array, presence: Presence, q: Array, y: Array) -> Array:
    """Likelihood ratio of the estimate's being that of a rater; nothing where weights only follow the cohort's size.

    With presence P and an item's weights y, the estimate is z = p_uᵀ (P Pᵀ)⁻¹ (y − P q): g of the truth, and of
    everybody else noise with a variance of q(1 − q)(g − g²). After: linear minimum mean square error
    """
    rest = y - np.outer(presence.P.sum(axis=1), q)
    if np.abs(rest).max() < _FLOOR:
        return np.zeros(len(q))
    gain, z = float(pull @ column), pull @ rest
    variance = q * (1.0 - q) * max(gain - gain**2, 0.0) + _FLOOR * gain + 1e-12
    return np.asarray((gain * z - gain**2 * (0.5 - q)) / variance)


def _by_updates(transcript: Transcript, pull: Array, column: Array, presence: Presence) -> Array:
    """Likelihood ratio by the size of what moves with the client: a rater adds to the variance of an item's sums.

    Of n raters each adds as much as another to the variance over rounds; the client's own part of it is known from how
    often it came and went.
    """
    rest, variance = transcript.once("updates in sums", lambda: _updates(transcript))
    pull = pull - pull.mean()
    size, gain = float(pull @ pull), float(pull @ column)
    if size < 1e-12:
        return np.zeros(rest.shape[1])
    raters = np.maximum(transcript.public.popularity.astype(np.float64), 1.0)
    more = gain**2 / (size * raters * max(float(presence.P.var(axis=0).mean()), 1e-9))
    energy = (np.tensordot(pull, rest, 1) ** 2 / (variance * size)).sum(axis=1)
    return np.asarray(0.5 * (energy * more / (1.0 + more) - rest.shape[2] * np.log1p(more)))


def _updates(transcript: Transcript) -> tuple[Array, Array]:
    """Rounds × items × columns of the sums, less their means, and their variances over rounds."""
    totals = np.stack([transcript.sums[t].total for t in transcript.cohorts])
    rest = totals - totals.mean(axis=0)
    return rest, (rest**2).mean(axis=0) + 1e-12
