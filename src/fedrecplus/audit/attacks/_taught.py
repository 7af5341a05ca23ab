"""A classifier of rows that is taught on real people whose ratings the attacker knows.

It looks at what ``shadow`` looks at, and at how likely each row is beside the others by a regression that was learned
from known ratings. Its own answers say how likely the others are to be rated at all, and it is taught again with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Transcript, _logistic
from fedrecplus.audit.attacks._features import CROSSED, deviates, features_of
from fedrecplus.audit.attacks._prior import against_group, prior
from fedrecplus.audit.attacks._reading import Reading, rated_share
from fedrecplus.audit.item_regression import KnownSets
from fedrecplus.errors import UserError
from fedrecplus.settings import Annotated, Settings, number, text

_TURNS = 2


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
    """People whose rows are looked at, and known sets that say how likely items are beside each other."""

    transcript: Transcript
    rows: Sequence[RowsOfClient]
    sets: KnownSets
    among: bool = True
    """whether the people are among those of the sets, so that each is judged without its own"""

    def inputs(self, chances: Sequence[Array], sizes: bool = False) -> list[Array]:
        """Features of every client's rows, given how likely each row is to be rated at all.

        All are ranks within an upload, but for ``sizes``: how many rows it has, and how often each item is rated.
        """
        found = []
        for one, chance in zip(self.rows, chances, strict=True):
            fits = self.sets.likely(one.reading.items, chance, one.client if self.among else None)
            within = against_group(self.transcript, one.reading.items, fits)
            columns = [deviates(fits), deviates(within), deviates(one.before), one.features]
            if sizes:
                popularity = self.transcript.public.popularity[one.reading.items]
                columns += [np.full(len(fits), np.log(max(len(fits), 1))), np.log1p(popularity)]
            found.append(np.column_stack(columns))
        return found

    def start(self) -> list[Array]:
        """Before anything is learned: every row as likely as the settings say."""
        return [np.full(len(r), rated_share(self.transcript)) for r in (one.before for one in self.rows)]


class TaughtSettings(Settings):
    """Options of every attack that is taught on real people."""

    learner: Annotated[
        Literal["logistic", "trees"], text("a logistic regression with products, or boosted trees (scikit-learn)")
    ] = "logistic"
    teachers: Annotated[int, number(1, 10**4, "people at most whose rows teach: more take time, trees above all")] = 80


Truth = Sequence[NDArray[np.bool_]]
Learn = Callable[
    [Sequence[Array], Truth, Sequence[Array], Sequence[Array], Sequence[Array]], tuple[list[Array], list[Array]]
]
"""known rows' inputs, truth and log odds beforehand, asked rows' inputs and log odds beforehand → log odds of both"""


def teach(known: People, truth: Truth, asked: People, learner: str = "logistic") -> list[Array]:
    """Log odds of the asked clients' rows, from the known clients' rows and what is true of them.

    What is learned says how likely rows are to be rated at all, which is learned from again.
    """
    learn: Learn = {"logistic": _by_logistic, "trees": _by_trees}[learner]
    chances, asked_chances = known.start(), asked.start()
    before, asked_before = ([one.before for one in people.rows] for people in (known, asked))
    scores: list[Array] = []
    sizes = learn is _by_trees  # a product of ranks and sizes says nothing, a branch may
    for _ in range(_TURNS):
        own = asked.inputs(asked_chances, sizes)
        told, scores = learn(known.inputs(chances, sizes), truth, before, own, asked_before)
        chances, asked_chances = [expit(odds) for odds in told], [expit(odds) for odds in scores]
    return scores


def _by_logistic(
    inputs: Sequence[Array], truth: Truth, before: Sequence[Array], own: Sequence[Array], own_before: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    held_out = np.concatenate([np.full(len(rated), number % 3 == 0) for number, rated in enumerate(truth)])
    model = _logistic.fit(np.vstack(inputs), np.concatenate(truth), CROSSED, np.concatenate(before), held_out)
    told = [b + _logistic.log_odds(model, X) for b, X in zip(before, inputs, strict=True)]
    return told, [b + _logistic.log_odds(model, X) for b, X in zip(own_before, own, strict=True)]


def _by_trees(
    inputs: Sequence[Array], truth: Truth, before: Sequence[Array], own: Sequence[Array], own_before: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """Trees know by heart whom they were taught on: each half of the known people is told by the other half's trees."""
    halves = [[*range(len(inputs))[half::2]] or [0] for half in range(2)]
    grown = [
        _grown(*(np.concatenate([part[one] for one in half]) for part in (inputs, truth, before))) for half in halves
    ]

    def say(trees: Any, X: Array, known: Array) -> Array:
        return np.asarray(trees.decision_function(np.column_stack([X, known])), dtype=np.float64)

    told = [say(grown[1 - number % 2], X, b) for number, (X, b) in enumerate(zip(inputs, before, strict=True))]
    asked = [np.mean([say(trees, X, b) for trees in grown], axis=0) for X, b in zip(own, own_before, strict=True)]
    return told, asked


def _grown(X: Array, y: NDArray[np.bool_], known: Array) -> Any:
    """Trees over all inputs and the log odds that are known beforehand: scikit-learn's, imported where asked for."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise UserError(
            "boosted trees need scikit-learn, which is not installed", "pip install scikit-learn, or learner=logistic"
        ) from None
    trees = HistGradientBoostingClassifier(
        max_iter=150, learning_rate=0.06, max_leaf_nodes=12, min_samples_leaf=60, l2_regularization=5.0,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    return trees.fit(np.column_stack([X, known]), y)
