"""The scorer: the only place where guesses and truth meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fedrecplus.audit.guess import Guess

Array = NDArray[np.float64]
_BOOTSTRAP = 1000
_LEVEL = 0.95
_WORST = 0.1
_FALSE_ALARMS = 0.01
MEANS = (
    "rating_exact", "rating_within_one", "rating_floor", "precision", "recall", "f1", "auc", "tpr_at_1pct_fpr",
    "precision_chance",
)  # fmt: skip
"""figures of an upload; a score has their means"""


@dataclass(frozen=True)
class AuditTruth:
    """The watched clients' ratings, in standard units."""

    of_client: Mapping[int, tuple[NDArray[np.int64], Array]]
    """client → rated items, ascending, and their ratings"""
    step: float
    """distance between two ratings of the scale"""
    majority: float
    """the most frequent rating of all: what somebody who saw nothing would say"""

    def of(self, client: int, items: NDArray[np.int64]) -> Array:
        """The client's rating of each item; nan where it has none."""
        rated, ratings = self.of_client[client]
        place = np.minimum(np.searchsorted(rated, items), len(rated) - 1)
        return np.where(rated[place] == items, ratings[place], np.nan)


def score(guesses: Mapping[int, Sequence[Guess]], truth: AuditTruth, share: float) -> dict[str, Any]:
    """How well an attack did: ``MEANS`` per upload, then per user, then over users, and what users differ by.

    None where there is nothing to tell apart or nothing was guessed. ``precision_chance`` is the precision of somebody
    who tosses coins, ``chance`` the area; worst tenths are the users that are read best; intervals are bootstrapped.
    ``share``: of the rows, those an attacker names as rated, 1/(1 + ρ).
    """
    users = [
        _means([_of_upload(guess, truth.of(client, guess.items), truth, share) for guess in said])
        for client, said in guesses.items()
        if said
    ]
    found: dict[str, Any] = {name: None if np.isnan(value) else float(value) for name, value in _means(users).items()}
    found |= {"users": len(users), "uploads": sum(len(said) for said in guesses.values())}
    found["chance"] = None if found["auc"] is None else 0.5
    for name in ("auc", "rating_exact"):
        known = np.sort([user[name] for user in users if not np.isnan(user[name])])[::-1]
        found[f"{name}_worst_tenth"] = float(known[: max(1, round(_WORST * len(known)))].mean()) if len(known) else None
        found[f"{name}_interval"] = _interval(known) if len(known) else None
    return found


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means of what is known."""
    known = {name: [row[name] for row in rows if not np.isnan(row[name])] for name in MEANS}
    return {name: float(np.mean(values)) if values else np.nan for name, values in known.items()}


def _of_upload(guess: Guess, ratings: Array, truth: AuditTruth, share: float) -> dict[str, float]:
    rated = ~np.isnan(ratings)
    found = dict.fromkeys(MEANS, np.nan)
    if rated.any():
        found["rating_floor"] = float(np.mean(np.abs(ratings[rated] - truth.majority) < truth.step / 2))
        if not np.isnan(guess.ratings).all():
            off = np.abs(guess.ratings[rated] - ratings[rated])
            found["rating_exact"] = float(np.mean(off < truth.step / 2))  # a nan is a wrong guess
            found["rating_within_one"] = float(np.mean(off < 1.5 * truth.step))
    if rated.any() and not rated.all():
        found["precision_chance"] = float(rated.mean())
        found["auc"] = area(guess.rated, rated)
        found["tpr_at_1pct_fpr"] = true_positives_at(guess.rated, rated, _FALSE_ALARMS)
        named = max(1, round(share * len(rated)))
        hits = expected_hits(guess.rated, rated, named)
        found["precision"], found["recall"] = hits / named, hits / float(rated.sum())
        found["f1"] = 2.0 * hits / (named + float(rated.sum()))
    return found


def area(scores: Array, rated: NDArray[np.bool_]) -> float:
    """Probability that a rated row has the greater score than another one, ties half. After: Mann, Whitney 1947

    >>> area(np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, False, True]))
    0.75
    """
    positive = int(rated.sum())
    above = rankdata(scores)[rated].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(rated) - positive)))


def true_positives_at(scores: Array, rated: NDArray[np.bool_], false_alarms: float) -> float:
    """Share of rated rows that are named when that share of the others is named too, along the straight-lined curve.

    >>> true_positives_at(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, True, False, False]), 0.01)
    1.0
    """
    values, place = np.unique(-scores, return_inverse=True)
    hits = np.concatenate([[0.0], np.cumsum(np.bincount(place, rated, len(values)))]) / rated.sum()
    alarms = np.concatenate([[0.0], np.cumsum(np.bincount(place, ~rated, len(values)))]) / (~rated).sum()
    last = int(np.searchsorted(alarms, false_alarms, side="right")) - 1
    if last == len(values):
        return 1.0
    part = (false_alarms - alarms[last]) / (alarms[last + 1] - alarms[last])
    return float(hits[last] + part * (hits[last + 1] - hits[last]))


def expected_hits(scores: Array, rated: NDArray[np.bool_], named: int) -> float:
    """Rated rows among the ``named`` with the greatest scores; ties at the end are drawn by lot.

    >>> expected_hits(np.array([1.0, 1.0, 0.0]), np.array([True, False, False]), 1)
    0.5
    """
    edge = np.sort(scores)[::-1][named - 1]
    sure, tied = scores > edge, scores == edge
    return float(rated[sure].sum() + (named - sure.sum()) * rated[tied].mean())


def _interval(values: Array) -> tuple[float, float]:
    """95 %, bootstrapped over users."""
    draws = np.random.default_rng(0).integers(len(values), size=(_BOOTSTRAP, len(values)))
    low, high = np.quantile(values[draws].mean(axis=1), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)
