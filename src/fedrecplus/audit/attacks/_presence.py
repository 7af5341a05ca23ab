"""What of the sums moves with a person's presence, where cohorts differ: by sampling, or because somebody is away.

Of one cohort that is the same in every round nothing can be said. Where a person was away in a round, that round's sums
lack its part, and the rounds beside it say what they would have been: people's parts follow V, which moves smoothly.
What V moves is taken off by regression on it; what is left drifts smoothly over the rounds, as a Gaussian
process whose size is found by its likelihood; and what others' comings and goings do is as large as so many persons.

Ours: kriging in time, with presence as its second kernel. After: Cressie 1990 (kriging)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.audit.transcript import Transcript

_DRIFTS = (0.0, 0.1, 1.0, 10.0, 100.0)
"""variance of the drift, in that of one round's whole cohort"""
_LENGTHS = (1.5, 4.0)
"""rounds over which drift stays alike"""
_NOISES = (1e-4, 1e-2, 1.0)
"""variance of what is new in every round, in the same unit"""
_BEFORE = 2
"""rounds before, whose V may explain a round's sums beside its own; V of later rounds has these sums in it"""


@dataclass(frozen=True)
class Presence:
    """Who was in which of some rounds."""

    clients: NDArray[np.int64]
    P: Array
    """rounds × clients"""

    @classmethod
    def noted(cls, cohorts: Sequence[NDArray[np.int64]]) -> Presence:
        """From the cohorts of these rounds."""
        clients = np.unique(np.concatenate(cohorts))
        return cls(clients, np.stack([np.isin(clients, cohort) for cohort in cohorts]).astype(np.float64))

    def of(self, client: int) -> Array:
        """A client's column; zeros for one that never came."""
        own = self.clients == client
        return self.P[:, own][:, 0] if own.any() else np.zeros(len(self.P))


@dataclass(frozen=True)
class Moving:
    """The sums' rows less what V explains, over √n, and how they go together over rounds and columns."""

    presence: Presence
    over_rounds: Array
    """covariance of a row over the rounds, one person's presence being 1"""
    rest: Array
    """rounds × items × columns"""
    spread: Array
    """covariance of columns that goes with it"""
    raters: Array
    summed: NDArray[np.bool_]

    def of(self, client: int) -> tuple[Array, float]:
        """What a person's presence brings, times a gain, over √n; and the gain, 0 where it never changes."""
        column = self.presence.of(client)
        pull = scipy.linalg.solve(self.over_rounds, column, assume_a="pos")
        return np.tensordot(pull, self.rest, 1), float(pull @ column)

    def log_ratio(self, client: int, parts: Array) -> Array:
        """Of each row's having a part like this one of the person's in it, a row per item; 0 where no row is summed."""
        moved, gain = self.of(client)
        return np.where(self.summed, leaning(moved, self.spread, parts, self.raters, gain), 0.0)


def leaning(rest: Array, spread: Array, parts: Array, raters: Array, gain: float = 1.0) -> Array:
    """Log likelihood ratio of each row's having its part in it, ``gain`` times: the rest of it, over √n, is normal."""
    toward = np.linalg.solve(spread, parts.T).T
    return np.asarray(
        (rest * toward).sum(axis=1) / np.sqrt(raters) - 0.5 * gain * (parts * toward).sum(axis=1) / raters
    )


def moving(transcript: Transcript, columns: slice) -> Moving:
    """Of all recorded rounds' sums of these columns."""
    rounds, raters = transcript.rounds_of(columns), raters_of(transcript)
    rest = np.stack([unexplained(transcript, t, columns, _BEFORE)[0] for t in rounds])
    summed = np.abs(rest).max(axis=(0, 2)) > 0.0
    presence = Presence.noted([transcript.cohorts[t] for t in rounds])
    kernel, spread = _likeliest(rest[:, summed], presence.P, np.array(rounds, dtype=np.float64))
    return Moving(presence, kernel, rest, spread, raters, summed)


def raters_of(transcript: Transcript) -> Array:
    """n, how many are publicly known to have rated each item, at least 1."""
    return np.maximum(transcript.public.popularity.astype(np.float64), 1.0)


def unexplained(transcript: Transcript, t: int, columns: slice, before: int = 0) -> tuple[Array, NDArray[np.bool_]]:
    """A round's rows over √n, less their regression on a constant and on V, of this round and so many before.

    n raters add up to n times a mean that follows the item's row of V. 0 for rows that aren't summed, the others
    being the second answer.
    """
    total = transcript.sums[t].total[:, columns].astype(np.float64) / np.sqrt(raters_of(transcript))[:, None]
    summed = np.abs(total).max(axis=1) > 0.0
    key = ("columns", "beside", t, columns.start, before, summed.tobytes())  # kept where other sums have the same rows
    X, factor = transcript.once(key, lambda: _explaining(transcript, t, columns, before, summed))
    rest = total - X @ scipy.linalg.cho_solve(factor, X[summed].T @ total[summed])
    return np.where(summed[:, None], rest, 0.0), summed


def _explaining(
    transcript: Transcript, t: int, columns: slice, before: int, summed: NDArray[np.bool_]
) -> tuple[Array, Any]:
    """The constant and V of this round and those before, over √n, and the factor of their equations."""
    raters = raters_of(transcript)
    tables = [transcript.broadcast(s).V[:, columns] for s in transcript.rounds if 0 <= t - s <= before]
    X = np.hstack([np.ones((len(raters), 1)), *tables]) * np.sqrt(raters)[:, None]
    X = X / np.maximum(np.sqrt((X[summed] ** 2).mean(axis=0)), 1e-12)
    return X, scipy.linalg.cho_factor(X[summed].T @ X[summed] + np.eye(X.shape[1]))


def _likeliest(rest: Array, presence: Array, rounds: Array) -> tuple[Array, Array]:
    """The kernel over rounds under which the rows are likeliest, and the columns' covariance beside it."""
    people = presence @ presence.T
    apart = (rounds[:, None] - rounds) ** 2
    best, found = -np.inf, (np.eye(len(rounds)), np.eye(rest.shape[2]))
    size = float(np.trace(people)) / len(people)
    for drift, length, noise in itertools.product(_DRIFTS, _LENGTHS, _NOISES):
        kernel = people + size * (drift * np.exp(-0.5 * apart / length**2) + noise * np.eye(len(rounds)))
        factor = np.linalg.cholesky(kernel)
        white = scipy.linalg.solve_triangular(factor, rest.reshape(len(rounds), -1), lower=True)
        white = white.reshape(-1, rest.shape[2])
        spread = white.T @ white / len(white)
        spread += 1e-9 * np.trace(spread) / len(spread) * np.eye(len(spread))
        likelihood = -rest.shape[2] * np.log(np.diag(factor)).sum() - 0.5 * len(rounds) * np.linalg.slogdet(spread)[1]
        if likelihood > best:
            best, found = float(likelihood), (kernel, spread)
    return found
