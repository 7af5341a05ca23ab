"""Sums of cohorts that differ: a regression of each item's weight on who took part singles a person out.

The server knows who answered in which round. An item's weight in a round is the sum over its raters in the cohort, so
rounds with and without a person differ by what that person rated, and by everybody else who came or went. With as many
rounds as persons that is solved exactly; with fewer it is a likelihood ratio. A cohort of one is an upload.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedrecplus.audit.attacks._from_sums import read_single, rows_in_question
from fedrecplus.audit.guess import Guess, silent
from fedrecplus.audit.transcript import Transcript

SEES = ("sums",)
Array = NDArray[np.float64]
_RIDGE = 1e-3
_FLOOR = 1e-4
"""least variance of an estimate: weights are no whole numbers where clients weigh themselves"""


def attack(transcript: Transcript, client: int) -> tuple[Guess, ...]:
    """Of all items: log odds that the client rated it, by its presence in the recorded rounds."""
    alone = [t for t, cohort in transcript.cohorts.items() if cohort.tolist() == [client]]
    if alone and transcript.sums:
        return (read_single(transcript, client, alone[-1], transcript.sums[alone[-1]]),)
    if not transcript.sums:
        return ()
    items = rows_in_question(transcript, client)
    return (Guess(transcript.rounds[-1], items, silent(items), log_odds(transcript, client)[items]),)


def log_odds(transcript: Transcript, client: int) -> Array:
    """Likelihood ratio of the estimate's being that of a rater, and how many raters there are.

    With presence P (rounds × clients) and each item's weights y, the estimate is z = p_uᵀ (P Pᵀ)⁻¹ (y − P q): g of the
    truth, and of everybody else noise with a variance of q(1 − q)(g − g²). After: linear minimum mean square error
    """
    P, factor = transcript.once("presence", lambda: _presence(transcript))
    clients, y = transcript.once(("weights in sums",), lambda: _weights(transcript))
    q = np.clip(y.sum(axis=0) / P.sum(), 1e-6, 1.0 - 1e-6)
    own = np.isin(client, clients)
    column = P[:, int(np.searchsorted(clients, client))] if own else np.zeros(len(P))
    pull = scipy.linalg.cho_solve(factor, column)
    gain = float(pull @ column)
    z = pull @ (y - np.outer(P.sum(axis=1), q))
    variance = q * (1.0 - q) * max(gain - gain**2, 0.0) + _FLOOR * gain + 1e-12
    return np.asarray(np.log(q / (1.0 - q)) + (gain * z - gain**2 * (0.5 - q)) / variance)


def _presence(transcript: Transcript) -> tuple[Array, tuple[Array, bool]]:
    """P and the Cholesky factor of P Pᵀ."""
    clients = np.unique(np.concatenate(list(transcript.cohorts.values())))
    P = np.stack([np.isin(clients, cohort) for cohort in transcript.cohorts.values()]).astype(np.float64)
    return P, scipy.linalg.cho_factor(P @ P.T + _RIDGE * len(clients) * np.eye(len(P)))


def _weights(transcript: Transcript) -> tuple[NDArray[np.int64], Array]:
    """All clients, and each item's weight by round, in units of a mean client's."""
    clients = np.unique(np.concatenate(list(transcript.cohorts.values())))
    rounds = [transcript.sums[t] for t in transcript.cohorts]
    return clients, np.stack([one.weights * one.clients / max(one.overall, 1e-300) for one in rounds])
