"""One exact sum over few people, taken apart: everybody adds multiples of one vector to the rows that they rated.

The server that follows the protocol does it afterwards, with what it has. A sum names nobody: each profile is
somebody's of the cohort, and two or three known ratings, or cohorts that differ, say whose. The scorer compares a
person with the profile that fits best, and in the control with the best of those in a sum without the person.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.audit.attacks._rank_one import unmixed
from fedrecplus.parts.channel import RingChannel
from fedrecplus.parts.model.ials import Ials
from fedrecplus.settings import Annotated, Settings as _Settings, number

_LENGTHS = np.geomspace(0.05, 10.0, 700)
"""of a person's vector that are tried"""
_SCANNED = 60
"""rated items that the length is found by"""
_SHARP = 0.05
"""steps between levels that a coefficient may be off by"""


class Settings(_Settings):
    """Options of the attack."""

    rounds: Annotated[int, number(1, 10**6, "sums that a person is in and that are taken apart, at most")] = 3


@dataclass(frozen=True)
class Profiles:
    """What one sum falls into: a row per person."""

    named: NDArray[np.bool_]
    ratings: Array
    """nan where unread"""


class Unmix(Attack[Settings]):
    """The attack."""

    SEES = ("sums",)
    ANONYMOUS = True

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of every profile in some sums that the client is in, spread over the rounds: its items, and its ratings."""
        model = transcript.config.model
        if not isinstance(model, Ials):
            return ()
        present = [t for t in transcript.rounds_of(model.choosing().columns) if client in transcript.cohorts[t]]
        places = np.linspace(0, len(present) - 1, min(self.settings.rounds, len(present))).round().astype(int)
        items, said = np.arange(len(transcript.public.popularity)), []
        for t in [present[place] for place in places]:
            profiles = transcript.once(("profiles", t), functools.partial(taken_apart, transcript, t, model))
            said += [
                Guess(t, items, ratings, named.astype(np.float64))
                for named, ratings in zip(profiles.named, profiles.ratings, strict=True)
            ]
        return tuple(said)


def taken_apart(transcript: Transcript, round_number: int, model: Ials[Any]) -> Profiles:
    """The profiles in one sum."""
    sums, columns = transcript.sums[round_number], model.choosing().columns
    table = sums.total[:, columns].astype(np.float64)
    if not np.isfinite(table).all():
        return Profiles(np.zeros((0, len(table)), dtype=bool), np.zeros((0, len(table))))
    directions, A = unmixed(table, _rounding(transcript, round_number, table))
    several = (A != 0.0).sum(axis=1) > 1
    directions, A = directions[several], A[several]
    sign = np.where((A > 0).sum(axis=1) >= (A < 0).sum(axis=1), 1.0, -1.0)[:, None]
    directions, A = sign * directions, sign * A
    ratings = np.stack([silent(row) for row in A]) if len(A) else A
    sizes = _sizes(directions, sums.statistic)
    if sizes is not None:
        W = transcript.broadcast(round_number).V[:, columns]
        ratings = np.stack([_read(transcript, model, *one, W) for one in zip(A, directions, sizes, strict=True)])
    return Profiles(A != 0.0, ratings)


def _rounding(transcript: Transcript, round_number: int, table: Array) -> float:
    """Standard deviation of a number's rounding, or of its noise where that is more."""
    channel, sums = transcript.config.channel, transcript.sums[round_number]
    people = len(transcript.cohorts[round_number])
    rounding = channel.rounding_deviation(people) if isinstance(channel, RingChannel) else 0.0
    return max(rounding, sums.noise, 1e-13 * float(np.abs(table).max(initial=0.0)), 1e-300)


def _sizes(directions: Array, statistic: Array) -> Array | None:
    """w|u|² of each direction, from Σ w u uᵀ; None where these directions don't make it up."""
    k = directions.shape[1]
    if not len(directions) or statistic.size != k * (k + 1) // 2:
        return None
    squares = np.stack([np.outer(d, d)[np.triu_indices(k)] for d in directions])
    sizes = np.linalg.lstsq(squares.T, statistic, rcond=None)[0]
    left = np.linalg.norm(statistic - sizes @ squares)
    return sizes if left < 1e-3 * np.linalg.norm(statistic) and (sizes > 0.0).all() else None


def _read(transcript: Transcript, model: Ials[Any], a: Array, direction: Array, size: float, W: Array) -> Array:
    """Ratings by levels of confidence: with s = |u| unknown, c_i = s·a_i/(size·(1 − s·d·W_i)) lands on them."""
    ratings = np.full(len(a), np.nan)
    levels = np.arange(1.0, 5.0 + 1e-9, transcript.step)
    confidence = model.confidences(levels, transcript.public)
    levels, confidence = levels[confidence > 0.0], confidence[confidence > 0.0]
    if len(np.unique(confidence)) < 2:
        return ratings
    items = np.flatnonzero(a)
    along, width, s = W[items] @ direction, _SHARP * float(np.diff(np.sort(confidence)).max()), _LENGTHS

    def confidences_at(s: Array, some: slice = slice(None)) -> Array:
        a_some = a[items[some]]
        return np.asarray(np.multiply.outer(s, a_some) / (size * (1.0 - np.multiply.outer(s, along[some]))))

    for _ in range(2):
        off = np.abs(confidences_at(s, slice(_SCANNED))[..., None] - confidence).min(axis=-1)
        best = s[np.exp(-0.5 * (off / width) ** 2).sum(axis=1).argmax()]
        s, width = best * np.linspace(0.99, 1.01, 200), 0.2 * width
    ratings[items] = levels[np.abs(confidences_at(best)[:, None] - confidence).argmin(axis=1)]
    return ratings
