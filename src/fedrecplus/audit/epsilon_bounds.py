"""What guesses of coins say of ε: the most that so many right ones refute, with a stated confidence.

After: Steinke, Nasr, Jagielski 2023 (one training run); Andrew et al. 2023 (one-shot estimates, Gaussian)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from fedrecplus.arrays import Array
from fedrecplus.parts.privacy import gaussian_epsilon

LEVEL = 0.95
_GUESSED = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""shares of the canaries that are guessed, those with the clearest scores; the bound pays for choosing among them"""


def bounds(
    scores: Array, included: NDArray[np.bool_], delta: float, level: float = LEVEL, normal: bool = True
) -> tuple[float, float]:
    """By right guesses, whatever the noise; and by distance, where scores are normal and δ > 0, else 0.

    Both hold together at this level: where there are two, each may err in half of the cases.
    """
    if not (normal and delta > 0.0):
        return epsilon_bound(scores, included, delta, level), 0.0
    each = 0.5 + level / 2.0
    return epsilon_bound(scores, included, delta, each), gaussian_bound(scores, included, delta, each)


def epsilon_bound(scores: Array, included: NDArray[np.bool_], delta: float, level: float = LEVEL) -> float:
    """The largest ε that so many right guesses refute. After: Steinke, Nasr, Jagielski 2023, Theorem 5.2"""
    order, count = np.argsort(scores, kind="stable"), len(scores)
    best = 0.0
    for share in _GUESSED:
        half = max(1, min(round(share * count / 2), count // 2))  # nobody is guessed to be in and out
        right = int((~included[order[:half]]).sum() + included[order[-half:]].sum())
        best = max(best, _refuted(count, 2 * half, right, delta, (1.0 - level) / len(_GUESSED)))
    return best


def _refuted(count: int, guesses: int, right: int, delta: float, chance: float) -> float:
    """The largest ε under which so many right guesses have at most this chance."""
    low, high = 0.0, 50.0
    if _chance_of(count, guesses, right, 0.0, delta) > chance:
        return 0.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _chance_of(count, guesses, right, middle, delta) <= chance else (low, middle)
    return low


def _chance_of(count: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Of so many right guesses, at most, under (ε, δ): a binomial's tail, and what δ adds to it."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, q))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, q)) / np.arange(1, right + 1)
    return min(1.0, tail + 2.0 * count * delta * float(below.max(initial=0.0)))


def gaussian_bound(scores: Array, included: NDArray[np.bool_], delta: float, level: float = LEVEL) -> float:
    """ε of a Gaussian mechanism whose scores are as far apart as these, at the distance's lower bound of this level.

    Holds where scores are normal, as sums with Gaussian noise are; goes beyond what so few right guesses can show.
    """
    inside, outside, count = scores[included], scores[~included], len(scores)
    if min(len(inside), len(outside)) < 2:
        return 0.0
    spread = math.sqrt(0.5 * (float(inside.var(ddof=1)) + float(outside.var(ddof=1))))
    apart = float(inside.mean() - outside.mean()) / max(spread, 1e-300)
    error = math.sqrt(1.0 / len(inside) + 1.0 / len(outside) + apart**2 / (2.0 * count))
    return gaussian_epsilon(max(0.0, apart - float(norm.ppf(level)) * error), delta)
