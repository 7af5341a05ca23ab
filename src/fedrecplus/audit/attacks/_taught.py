"""A classifier of rows that is taught on real people whose ratings the attacker knows.

It looks at what ``shadow`` looks at, and at how likely each row is beside the others by a regression that was learned
from known ratings. Its own answers say how likely the others are to be rated at all, and it is taught again with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.attacks import _boosted, _logistic
from fedrecplus.audit.attacks._features import CROSSED, deviates, features_of
from fedrecplus.audit.attacks._prior import against_group, prior
from fedrecplus.audit.attacks._reading import Reading, rated_share
from fedrecplus.audit.transcript import Transcript
from fedrecplus.settings import Annotated, Settings, text

Array = NDArray[np.float64]
Items = NDArray[np.int64]
Likely = Callable[[int, Items, Array], Array]
"""client, items, each one's chance of being rated → how likely each is beside the others"""
_TURNS = 2
TEACHERS = 80
"""people at most whose rows teach: more add little, and time"""


@dataclass(frozen=True)
class RowsOfClient:
    """One client's last upload as the classifier sees it."""

    client: int
    reading: Reading
    features: Array
    before: Array
    """log odds by the sets of rows alone"""


def rows_of(transcript: Transcript, client: int) -> RowsOfClient:
    """What doesn't depend on known ratings; computed once."""

    def compute() -> RowsOfClient:
        reading, features = features_of(transcript, client)
        return RowsOfClient(client, reading, features, prior(transcript, client, reading.items))

    return transcript.once(("taught rows", transcript.assumed, client), compute)


@dataclass(frozen=True)
class People:
    """People whose rows are looked at, and how likely items are beside each other for each of them."""

    transcript: Transcript
    rows: Sequence[RowsOfClient]
    likely: Likely

    def inputs(self, chances: Sequence[Array]) -> list[Array]:
        """Features of every client's rows, given how likely each row is to be rated at all."""
        found = []
        for one, chance in zip(self.rows, chances, strict=True):
            fits = self.likely(one.client, one.reading.items, chance)
            within = against_group(self.transcript, one.reading.items, fits)
            found.append(np.column_stack([deviates(fits), deviates(within), deviates(one.before), one.features]))
        return found

    def start(self) -> list[Array]:
        """Before anything is learned: every row as likely as the settings say."""
        return [np.full(len(r), rated_share(self.transcript, len(r))) for r in (one.before for one in self.rows)]


class TaughtSettings(Settings):
    """Options of every attack that is taught on real people."""

    learner: Annotated[
        Literal["logistic", "trees", "both"],
        text("a logistic regression with products, boosted trees (scikit-learn), or the mean of their log odds"),
    ] = "logistic"


def teach(known: People, truth: Sequence[NDArray[np.bool_]], asked: People, learner: str = "logistic") -> list[Array]:
    """Log odds of the asked clients' rows, from the known clients' rows and what is true of them."""
    chances, asked_chances = known.start(), asked.start()
    scores: list[Array] = []
    held_out = np.concatenate([np.full(len(rated), number % 3 == 0) for number, rated in enumerate(truth)])
    for _ in range(_TURNS):
        inputs, before = known.inputs(chances), [one.before for one in known.rows]
        model = _logistic.fit(np.vstack(inputs), np.concatenate(truth), CROSSED, np.concatenate(before), held_out)
        chances = [_chance(b + _logistic.log_odds(model, X)) for b, X in zip(before, inputs, strict=True)]
        own = asked.inputs(asked_chances)
        scores = [one.before + _logistic.log_odds(model, X) for one, X in zip(asked.rows, own, strict=True)]
        asked_chances = [_chance(score) for score in scores]
    if learner == "logistic":
        return scores
    trees = _boosted.fit(np.vstack(inputs), np.concatenate(truth), np.concatenate(before))
    grown = [_boosted.log_odds(trees, X, one.before) for one, X in zip(asked.rows, own, strict=True)]
    return grown if learner == "trees" else [(a + b) / 2.0 for a, b in zip(scores, grown, strict=True)]


def _chance(odds: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0))))
