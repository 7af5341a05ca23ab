"""Popularity, averages and the mean from one noisy sum at the start: what a device adds, what the server makes of it.

A device sends, for each item that it rated, w and w·(r − m), with m its own damped mean and w = √(cap/n), at most 1;
besides, 1 and m, for the mean of all. The whole has a bounded norm. The server takes known noise out again by
shrinkage, which costs no privacy: whatever is computed from noisy sums is as private as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.parts.privacy._budget import person_weight
from fedrecplus.protocol import MIDDLE

COUNT_SHARE = 0.8  # a
"""how large a count is beside a residual: more makes counts better and averages worse"""
_TYPICAL = 0.7
"""residuals are clipped to this root mean square"""
_PERSON_SHARE = 0.1
"""how large a person's own two numbers are beside √cap: they decide one mean over everybody, so little is enough"""
_OWN_PRIOR = 10.0
"""pseudo-ratings at the scale's usual mean that damp a person's own"""
_USUAL = MIDDLE + 0.5
"""people rate what they chose to see: a public guess, which only damps"""
_ITEM_SD = 0.45
"""of true averages around what popularity predicts"""
_RATING_VARIANCE = 0.5
"""of w·(r − m) in a sum, per unit of Σ w"""


@dataclass(frozen=True)
class Figures:
    """What the server makes of the sum."""

    popularity: NDArray[np.int64]
    """Σ w of each item's raters, at least 0"""
    average: Array
    mean: float
    people: int
    """how many contributed, with noise like the rest"""


def sensitivity(cap: int) -> float:
    """The norm that a device clips its contribution to."""
    return float(np.sqrt(cap * (_TYPICAL**2 * (1.0 + COUNT_SHARE**2) + 2.0 * _PERSON_SHARE**2)))


def contribution(items: NDArray[np.int64], ratings: Array, item_count: int, cap: int) -> Array:
    """What a device adds to the sum: counts, then residuals, then its own two numbers; norm ``sensitivity`` at most."""
    vector = np.zeros(2 * item_count + 2)
    own_mean = (ratings.sum() + _OWN_PRIOR * _USUAL) / (len(ratings) + _OWN_PRIOR)
    weight = person_weight(len(items), cap)
    vector[items] = COUNT_SHARE * weight
    vector[item_count + items] = weight * (ratings - own_mean)
    person = _PERSON_SHARE * np.sqrt(cap)
    vector[-2:] = person, person * np.clip(own_mean - _USUAL, -1.0, 1.0)
    norm, most = float(np.linalg.norm(vector)), sensitivity(cap)
    return vector * (most / norm * (1.0 - 1e-12)) if norm > most else vector


def figures(total: Array, sd: float, cap: int) -> Figures:
    """Counts as they are, averages by posterior mean: each between its noisy figure and what popularity predicts.

    Ours: empirical Bayes with the noise's known variance (Efron and Morris 1973)
    """
    items = (len(total) - 2) // 2
    popularity = np.maximum(np.rint(total[:items] / COUNT_SHARE), 0.0)
    people = max(int(np.rint(total[-2] / (_PERSON_SHARE * np.sqrt(cap)))), 1)
    mean = _USUAL + float(np.clip(total[-1] / max(total[-2], 1.0), -1.0, 1.0))
    counts = np.maximum(popularity, 0.4 * np.sqrt(cap))
    variance = sd**2 + _RATING_VARIANCE * counts
    prior = _by_popularity(total[items:-2] / counts, counts, variance)
    gain = _ITEM_SD**2 * counts / (_ITEM_SD**2 * counts**2 + variance)
    effect = prior + gain * (total[items:-2] - counts * prior)
    average = np.clip(mean + effect, MIDDLE - 2.0, MIDDLE + 2.0)
    return Figures(popularity.astype(np.int64), average, mean, people)


def _by_popularity(effects: Array, counts: Array, variance: Array) -> Array:
    """Item effects by a quadratic in log popularity, fitted by least squares with the effects' precisions."""
    weights = counts**2 / (variance + _ITEM_SD**2 * counts**2)
    log = np.log(counts) - np.average(np.log(counts), weights=weights)
    F = np.stack([np.ones(len(counts)), log, log**2], axis=1)
    weighted = F * weights[:, None]
    return np.asarray(F @ np.linalg.solve(weighted.T @ F + 1e-6 * np.eye(3), weighted.T @ effects))
