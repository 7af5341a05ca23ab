"""The scorer: the only place where guesses and truth meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks import Guess
from fedrecplus.audit.truth import AuditTruth

Said = Mapping[int, Sequence[Guess]]
"""client → what an attack says of each of its uploads"""
_BOOTSTRAP = 1000
_LEVEL = 0.95
_WORST = 0.1
_FALSE_ALARMS = {"tpr_at_1pct_fpr": 0.01, "tpr_at_01pct_fpr": 0.001}
ROC = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""shares of false alarms that a curve is drawn through"""
_PRECISE = 0.9
"""precision at which items count as named"""
CHANCE = 0.5
NOTHING = Guess(-1, np.empty(0, np.int64), np.empty(0), np.empty(0))
"""what an attack says that has nothing to look at"""
_OF_UPLOAD = (
    "rating_exact", "rating_within_one", "rating_floor", "precision", "recall", "f1", "auc", "tpr_at_1pct_fpr",
    "tpr_at_01pct_fpr", "precision_chance", "named",
)  # fmt: skip
_OF_CONTROL = ("auc_control", "rating_exact_control", "named_control")
_CURVE = tuple(f"{whose}_{alarms}" for whose in ("roc", "roc_control") for alarms in ROC)
MEANS = (*_OF_UPLOAD, *_OF_CONTROL)
"""figures of an upload; a score has their means"""
_WITH_INTERVAL = (
    "auc", "rating_exact", "tpr_at_1pct_fpr", "tpr_at_01pct_fpr", "named", *_OF_CONTROL, "gain", "rating_gain",
)  # fmt: skip
RATERS = {"≤ 2": (0, 2), "3–5": (3, 5), "6–10": (6, 10), "11–50": (11, 50), "> 50": (51, 10**9)}
"""of an item, the person included: what few rated shows most, and means over people hide it"""
_RARITY_DRAWS = 200


def score(said: Said, truth: AuditTruth, share: float, controls: Said | None = None) -> dict[str, Any]:
    """How well an attack did: ``MEANS`` per upload, then per user, then over users, and what users differ by.

    ``controls`` is what the attack says of each client when somebody else's uploads stand in for its own: what it
    would have said anyway. Of a client that it says nothing about, nothing is told apart (an area of .5), and its
    ratings are guessed as their items' public averages. Worst tenths are the users that are read best; intervals are
    bootstrapped. ``share``: of the rows, those an attacker names as rated, 1/(1 + ρ).
    """
    controls = controls or {}
    users = [_of_user(client, some, controls.get(client, ()), truth, share) for client, some in said.items()]
    means = _means(users)
    found: dict[str, Any] = {name: _known(means[name]) for name in MEANS}
    found["found"] = int(sum(user["named"] > user["named_control"] for user in users))
    found |= {"users": len(users), "uploads": sum(len(some) for some in said.values()), "chance": CHANCE}
    for user in users:
        user["gain"] = user["auc"] - user["auc_control"]
        user["rating_gain"] = user["rating_exact"] - user["rating_exact_control"]
    for name in _WITH_INTERVAL:
        known = np.sort([user[name] for user in users if not np.isnan(user[name])])[::-1]
        found[f"{name}_worst_tenth"] = float(known[: max(1, round(_WORST * len(known)))].mean()) if len(known) else None
        found[f"{name}_interval"] = _interval(known) if len(known) else None
    found["found_interval"] = interval_of_share(found["found"], len(users))
    found |= {whose: [_known(means[f"{whose}_{a}"]) for a in ROC] for whose in ("roc", "roc_control")}
    return found


def interval_of_share(hits: int, tries: int) -> tuple[float, float]:
    """95 %, of a share of which so many were seen. After: Clopper and Pearson 1934

    >>> [round(end, 3) for end in interval_of_share(0, 10)]
    [0.0, 0.308]
    """
    low, high = binomtest(hits, tries).proportion_ci(_LEVEL) if tries else (0.0, 0.0)
    return float(low), float(high)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _of_user(
    client: int, some: Sequence[Guess], controls: Sequence[Guess], truth: AuditTruth, share: float
) -> dict[str, float]:
    """Means over a client's uploads; its n-th is compared with the other's n-th."""
    matched, rows = None, []
    for number, guess in enumerate(some or (NOTHING,)):
        asked = guess.items
        if truth.against == "unrated" or not np.isnan(truth.of(client, asked)).any():
            matched = truth.question(client, guess.told) if matched is None else matched
            asked = matched
        control = controls[min(number, len(controls) - 1)] if controls else NOTHING
        rows.append(_of_upload(client, guess, control, asked, truth, share if asked is guess.items else CHANCE))
    return _means(rows)


def _of_upload(
    client: int, guess: Guess, control: Guess, asked: Items, truth: AuditTruth, share: float
) -> dict[str, float]:
    found = _ratings_read(client, guess, truth)
    rated = ~np.isnan(truth.of(client, asked))
    if rated.any() and not rated.all():
        found |= _told_apart(placed(guess, asked)[0], rated, share)
        found["auc_control"] = area(placed(control, asked)[0], rated)
        for whose, scores in (("roc", placed(guess, asked)[0]), ("roc_control", placed(control, asked)[0])):
            curve = true_positives_at(scores, rated, np.array(ROC))
            found |= {f"{whose}_{a}": float(hits) for a, hits in zip(ROC, curve, strict=True)}
    found["rating_exact_control"] = _ratings_read(client, control, truth)["rating_exact"]
    found["named"], found["named_control"] = (named(client, one, truth) for one in (guess, control))
    return found


def named(client: int, guess: Guess, truth: AuditTruth) -> float:
    """Share of the client's items that the attack can name while nine in ten of those it names are the client's."""
    rated = ~np.isnan(truth.of(client, guess.items))
    values, place = np.unique(-guess.rated, return_inverse=True)
    hits, count = (
        np.cumsum(np.bincount(place, rated, len(values))),
        np.cumsum(np.bincount(place, minlength=len(values))),
    )
    return float(np.max(hits[hits >= _PRECISE * count], initial=0.0) / len(truth.of_client[client][0]))


def best_fitting(said: Said, truth: AuditTruth) -> dict[int, Sequence[Guess]]:
    """Of several profiles, for each client the one that names most of its items, and most of them rightly."""
    return {
        client: (max(profiles, key=lambda one: _fit(client, one, truth)),) if profiles else ()
        for client, profiles in said.items()
    }


def _fit(client: int, guess: Guess, truth: AuditTruth) -> tuple[float, float]:
    chosen = guess.items[guess.rated > 0.0]
    hits = float(np.isin(chosen, truth.of_client[client][0]).sum())
    return (hits if hits >= _PRECISE * len(chosen) else 0.0), hits / max(len(chosen), 1)


def _ratings_read(client: int, guess: Guess, truth: AuditTruth) -> dict[str, float]:
    """Of all of the client's ratings; an item that the attack has no opinion on is guessed as its public average."""
    found = dict.fromkeys((*MEANS, *_CURVE), np.nan)
    items, ratings = truth.of_client[client]
    asked = ~np.isin(items, guess.told)
    items, ratings = items[asked], ratings[asked]
    said = placed(guess, items)[1]
    off = np.abs(np.where(np.isnan(said), truth.usual[items], said) - ratings)
    found["rating_floor"] = float(np.mean(np.abs(ratings - truth.majority) < truth.step / 2))
    found["rating_exact"] = float(np.mean(off < truth.step / 2))
    found["rating_within_one"] = float(np.mean(off < 1.5 * truth.step))
    return found


def _told_apart(scores: Array, rated: NDArray[np.bool_], share: float) -> dict[str, float]:
    named = max(1, round(share * len(rated)))
    hits, number = expected_hits(scores, rated, named), float(rated.sum())
    return {
        "precision_chance": float(rated.mean()),
        "auc": area(scores, rated),
        **{name: float(true_positives_at(scores, rated, alarms)) for name, alarms in _FALSE_ALARMS.items()},
        "precision": hits / named,
        "recall": hits / number,
        "f1": 2.0 * hits / (named + number),
    }


def placed(guess: Guess, items: Items) -> tuple[Array, Array]:
    """A guess's scores and ratings of these items; those it says nothing of come last, and have no rating."""
    if len(guess.items) == 0:
        return np.zeros(len(items)), np.full(len(items), np.nan)
    order = np.argsort(guess.items, kind="stable")
    place = order[np.minimum(np.searchsorted(guess.items, items, sorter=order), len(order) - 1)]
    there = guess.items[place] == items
    lowest = float(np.min(guess.rated, initial=0.0)) - 1.0
    return np.where(there, guess.rated[place], lowest), np.where(there, guess.ratings[place], np.nan)


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means of what is known."""
    known = {name: [row[name] for row in rows if not np.isnan(row[name])] for name in rows[0]} if rows else {}
    return {name: float(np.mean(values)) if values else np.nan for name, values in known.items()}


def area(scores: Array, rated: NDArray[np.bool_]) -> float:
    """Probability that a rated row has the greater score than another one, ties half. After: Mann, Whitney 1947

    >>> area(np.array([0.1, 0.2, 0.3, 0.4]), np.array([False, True, False, True]))
    0.75
    """
    positive = int(rated.sum())
    above = rankdata(scores)[rated].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(rated) - positive)))


def true_positives_at(scores: Array, rated: NDArray[np.bool_], false_alarms: float | Array) -> Array:
    """Share of rated rows that are named when that share of the others is named too, along the straight-lined curve.

    >>> float(true_positives_at(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, True, False, False]), 0.01))
    1.0
    """
    values, place = np.unique(-scores, return_inverse=True)
    hits = np.concatenate([[0.0], np.cumsum(np.bincount(place, rated, len(values)))]) / rated.sum()
    alarms = np.concatenate([[0.0], np.cumsum(np.bincount(place, ~rated, len(values)))]) / (~rated).sum()
    return np.asarray(np.interp(false_alarms, alarms, hits))


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


def by_rarity(said: Said, controls: Said, truth: AuditTruth) -> list[dict[str, Any]]:
    """Items of all people together, by how many rated them: area and found ones, with and without the person.

    For attacks whose scores of different people are on one scale. Intervals are bootstrapped over people.
    """
    people = [_asked(client, said[client], controls.get(client, ()), truth) for client in said if said[client]]
    found = []
    for raters, (least, most) in RATERS.items():
        inside = [table[:, (table[0] >= least) & (table[0] <= most)] for table in people]
        figures = _figures(inside)
        if figures is None:
            continue
        draws = np.random.default_rng(0).integers(len(inside), size=(_RARITY_DRAWS, len(inside)))
        again = [f for draw in draws if (f := _figures([inside[person] for person in draw])) is not None]
        low, high = np.quantile([f["auc"] - f["auc_control"] for f in again], [0.025, 0.975])
        items = int(sum(table.shape[1] for table in inside))
        found.append({"raters": raters, "items": items, **figures, "gain_interval": [float(low), float(high)]})
    return found


def _asked(client: int, said: Sequence[Any], control: Sequence[Any], truth: AuditTruth) -> Array:
    """Of one person's items in question: raters, whether rated, score, and score in the control."""
    items = truth.question(client, said[-1].told)
    scores = [placed(guesses[-1] if guesses else NOTHING, items)[0] for guesses in (said, control)]
    return np.stack([truth.popularity[items], ~np.isnan(truth.of(client, items)), *scores])


def _figures(people: Sequence[Array]) -> dict[str, float] | None:
    """None where there are no items to tell apart."""
    table = np.concatenate(people, axis=1) if people else np.zeros((4, 0))
    rated = table[1] > 0.0
    if rated.all() or not rated.any():
        return None
    return {
        "auc": area(table[2], rated),
        "auc_control": area(table[3], rated),
        "tpr_at_1pct_fpr": float(true_positives_at(table[2], rated, _FALSE_ALARMS["tpr_at_1pct_fpr"])),
        "tpr_at_1pct_fpr_control": float(true_positives_at(table[3], rated, _FALSE_ALARMS["tpr_at_1pct_fpr"])),
    }
