"""The scorer: the only place where guesses and truth meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fedrecplus.audit.guess import Guess

Array = NDArray[np.float64]
_BOOTSTRAP = 1000
_LEVEL = 0.95
_WORST = 0.1
_FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Truth:
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


@dataclass(frozen=True)
class Score:
    """How well an attack did: means over users; None where there is nothing to tell apart or nothing was guessed."""

    users: int
    uploads: int
    rating_exact: float | None
    rating_within_one: float | None
    rating_floor: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    auc: float | None
    tpr_at_1pct_fpr: float | None
    chance: float | None
    """area under the curve of somebody who tosses coins"""
    precision_chance: float | None
    """precision of somebody who tosses coins: the share of rated rows"""
    auc_worst_tenth: float | None
    """mean over the tenth of the users that are best told apart"""
    rating_exact_worst_tenth: float | None
    auc_interval: tuple[float, float] | None
    """95 %, bootstrapped over users"""
    rating_exact_interval: tuple[float, float] | None


def score(guesses: Mapping[int, Sequence[Guess]], truth: Truth, share: float) -> Score:
    """Score an attack's guesses, by client. ``share``: of the rows, those an attacker names as rated, 1/(1 + ρ)."""
    users = [_of_user([_of_upload(guess, truth.of(client, guess.items), truth, share) for guess in said])
             for client, said in guesses.items() if said]  # fmt: skip
    means = {name: _mean([user[name] for user in users]) for name in _COLUMNS}
    auc = np.array([user["auc"] for user in users])
    exact = np.array([user["exact"] for user in users])
    nobody_hides = means["auc"] is None
    return Score(
        users=len(users),
        uploads=sum(len(said) for said in guesses.values()),
        rating_exact=means["exact"],
        rating_within_one=means["within_one"],
        rating_floor=means["floor"],
        precision=means["precision"],
        recall=means["recall"],
        f1=means["f1"],
        auc=means["auc"],
        tpr_at_1pct_fpr=means["tpr"],
        chance=None if nobody_hides else 0.5,
        precision_chance=None if nobody_hides else means["share"],
        auc_worst_tenth=_worst(auc),
        rating_exact_worst_tenth=_worst(exact),
        auc_interval=_interval(auc),
        rating_exact_interval=_interval(exact),
    )


_COLUMNS = ("exact", "within_one", "floor", "precision", "recall", "f1", "auc", "tpr", "share")


def _of_upload(guess: Guess, ratings: Array, truth: Truth, share: float) -> dict[str, float]:
    rated = ~np.isnan(ratings)
    found = dict.fromkeys(_COLUMNS, np.nan)
    if rated.any():
        found["floor"] = float(np.mean(np.abs(ratings[rated] - truth.majority) < truth.step / 2))
        if not np.isnan(guess.ratings).all():
            off = np.abs(guess.ratings[rated] - ratings[rated])
            found["exact"] = float(np.mean(off < truth.step / 2))  # a nan is a wrong guess
            found["within_one"] = float(np.mean(off < 1.5 * truth.step))
    if rated.any() and not rated.all():
        found["share"] = float(rated.mean())
        found["auc"] = area(guess.rated, rated)
        found["tpr"] = true_positives_at(guess.rated, rated, _FALSE_ALARMS)
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


def _of_user(uploads: list[dict[str, float]]) -> dict[str, float]:
    return {name: _or_nan(_mean([upload[name] for upload in uploads])) for name in _COLUMNS}


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else None


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _worst(values: Array) -> float | None:
    known = np.sort(values[~np.isnan(values)])[::-1]
    return float(known[: max(1, round(_WORST * len(known)))].mean()) if len(known) else None


def _interval(values: Array) -> tuple[float, float] | None:
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return None
    draws = np.random.default_rng(0).integers(len(known), size=(_BOOTSTRAP, len(known)))
    low, high = np.quantile(known[draws].mean(axis=1), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)
