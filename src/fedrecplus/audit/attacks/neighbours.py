"""Which uploaded items explain the others as their nearest neighbours: the attack made for FedRec+.

The encoder is public, so the server can rank all items by likeness as the client did. Two questions are asked of a row.
Would the client have uploaded more, had it rated this item? An item that is more like something outside the upload than
the pseudo items are like their models can't have been rated. And is this row's rating a copy of its neighbour's?
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._reading import Reading, rated_share, readings
from fedrecplus.parts import similarity_matrix
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Settings

_REACH = 4.0
_NEAREST = 40
_SWEEPS = 25
_SLIP = 0.02
"""probability that a copied rating doesn't match, so that one slip doesn't decide"""


class NeighbourCopies(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the first and the last upload: rows that explain others against rows that are explained."""
        read = readings(transcript, client)
        chosen = {reading.round: reading for reading in (*read[:1], *read[-1:])}
        guesses = []
        for t, reading in chosen.items():
            score = _REACH * reach(transcript, client, reading) + copies(transcript, client, reading)
            guesses.append(Guess(t, reading.items, reading.nearest(transcript.step), score))
        return tuple(guesses)


def reach(transcript: Transcript, client: int, reading: Reading) -> Array:
    """How unlike the nearest item outside the upload is: rated items have all their near ones inside.

    Where the set is the top k by likeness to something rated, a rated item's nearest outsider is less alike than any
    pseudo item is to its model. In standard deviations of the upload.
    """
    if not (transcript.assumed.pseudo_items.most_similar and _has_features(transcript)):
        return np.zeros(len(reading.items))
    outer, inner = likeness(transcript, client, reading)
    spread = max(float(outer.std()), 1e-9)
    score: Array = -(outer + 0.5 * inner - 1.5 * outer.mean()) / spread
    return score


def likeness(transcript: Transcript, client: int, reading: Reading) -> tuple[Array, Array]:
    """Greatest cosine of each row with an item outside the upload, and with another row of it."""
    items = reading.items
    anew = transcript.config.redraws
    features = _when_drawn(transcript, client, reading, anew).features
    if not _has_features(transcript):
        return np.zeros(len(items)), np.zeros(len(items))
    near = similarity_matrix(features[items], features)
    near[np.arange(len(items)), items] = -np.inf
    inner = near[:, items].max(axis=1)
    near[:, items] = -np.inf
    outer = near.max(axis=1)
    return np.where(np.isfinite(outer), outer, 0.0), np.where(np.isfinite(inner), inner, 0.0)


def _has_features(transcript: Transcript) -> bool:
    """Whether anybody encodes items: without that, no rule looks at similarity."""
    return transcript.config.needs_features


def _when_drawn(transcript: Transcript, client: int, reading: Reading, anew: bool) -> Broadcast:
    """The broadcast that the client drew by: this round's, or that of its first."""
    return transcript.broadcast(reading.round if anew else transcript.uploads(client)[0].round)


def copies(transcript: Transcript, client: int, reading: Reading) -> Array:
    """log P(rating | rated) − log P(rating | copied from a rated row), being rated unknown for all rows.

    Mean field: each row's probability of being rated is set by the others' in turn. A row is explained as a copy by the
    rated rows near it; it speaks for or against each neighbour by what that neighbour's being rated would explain.
    """
    n, ratings = len(reading.items), reading.nearest(transcript.step)
    likely = _copying(transcript, client, reading)
    if likely is None or n < 3 or np.isnan(ratings).any():
        return np.zeros(n)
    levels, level = np.unique(ratings, return_inverse=True)
    match = np.where(level[:, None] == level, 1.0 - _SLIP, _SLIP / max(len(levels) - 1, 1))
    q = np.full(n, rated_share(transcript))
    prior = np.log(q / np.maximum(1.0 - q, 1e-9))
    score = np.zeros(n)
    for _ in range(_SWEEPS):
        base = np.bincount(level, q, len(levels)) + 0.5
        explained, gains = likely(q, match, (base / base.sum())[level])
        fresh = np.log((base / base.sum())[level]) - np.log(explained) + ((1.0 - q) / explained) @ gains
        score = 0.5 * score + 0.5 * fresh
        q = expit(np.clip(score + prior, -12.0, 12.0))
    return score


Explain = Callable[[Array, Array, Array], tuple[Array, Array]]
"""P(rating | copied) of each row, and its derivative by each other row's probability of being rated"""


def _copying(transcript: Transcript, client: int, reading: Reading) -> Explain | None:
    """How the scheme's virtual ratings are copied: from the nearest rated row, from one drawn by weight, or not."""
    rule, copied = transcript.config.virtual_ratings, transcript.assumed.virtual_ratings.copied
    if not transcript.config.hides_rows or copied == "no":
        return None
    message = _when_drawn(transcript, client, reading, anew=rule.settings.refresh)
    if copied == "drawn":
        weights = rule.copy_weights(reading.items, reading.items, message)
        np.fill_diagonal(weights, 0.0)
        return partial(_from_drawn, weights)
    if not _has_features(transcript):
        return None
    features = message.features[reading.items]
    near = similarity_matrix(features, features)
    np.fill_diagonal(near, -np.inf)
    return partial(_from_nearest, np.argsort(-near, axis=1, kind="stable")[:, : min(_NEAREST, len(near) - 1)])


def _from_nearest(order: NDArray[np.int64], q: Array, match: Array, base: Array) -> tuple[Array, Array]:
    chance, hit = q[order], np.take_along_axis(match, order, axis=1)
    tail = base.copy()
    after = np.empty_like(chance)
    for place in range(chance.shape[1] - 1, -1, -1):
        after[:, place] = tail
        tail = chance[:, place] * hit[:, place] + (1.0 - chance[:, place]) * tail
    before = np.cumprod(np.hstack([np.ones((len(q), 1)), 1.0 - chance[:, :-1]]), axis=1)
    gains = np.zeros_like(match)
    np.put_along_axis(gains, order, before * (hit - after), axis=1)
    return tail, gains


def _from_drawn(weights: Array, q: Array, match: Array, base: Array) -> tuple[Array, Array]:
    total = weights @ q + 1e-12
    explained = ((weights * match) @ q + 1e-12 * base) / total
    return explained, weights * (match - explained[:, None]) / total[:, None]
