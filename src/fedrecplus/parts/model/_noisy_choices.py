"""A table of choices under a budget: where it starts, and what the server makes of a sum that is half noise.

Ours: with ε for thousands of people, a table that starts at chance spends the budget on finding what public features
say for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import PublicItems
from fedrecplus.randomness import normal, subkey

_LENGTH = 0.9
"""of rows, as root mean square over choices: noise would lengthen them, and shrink what people send"""
_SPREAD = 0.6
"""what sums say of an item grows with this power of how many chose it"""


def rows_of_features(seed: int, columns: int, public: PublicItems) -> Array:
    """W before training: popularity, then random directions of the catalogue's features; longer where more chose.

    Items that are alike start alike, so that the first sums tell of tastes. Without features, chance. After: Johnson
    and Lindenstrauss 1984 (random projections)
    """
    items, features = len(public.popularity), unit_rows(public.content)
    if not features.any():
        features = np.ones((items, 0))
    places = np.arange(max(features.shape[1], items) * columns, dtype=np.uint64).reshape(-1, columns)
    chance = normal(subkey(seed, "start-W"), places)
    tastes = features @ chance[: features.shape[1]] if features.shape[1] else chance[:items]
    tastes /= max(float(np.sqrt(np.mean(tastes**2))), 1e-12)
    tastes[:, 0] = 1.0
    length = np.sqrt(public.popularity / max(float(public.popularity.mean()), 1e-12))
    return scaled(length[:, None] * tastes, public)


def scaled(W: NDArray[Any], public: PublicItems) -> Array:
    """The rows with their usual length; a person's weights take the inverse."""
    q = public.popularity / max(int(public.popularity.sum()), 1)
    return np.asarray(W * (_LENGTH / max(float(np.sqrt(q @ np.sum(W**2, axis=1))), 1e-12)))


def without_noise(evidence: NDArray[Any], sd: float, people: Array) -> Array:
    """The posterior mean of sums with noise of a known standard deviation, in the directions of its columns.

    Each direction's strength is what it has beyond the noise, and an item's share of that grows with who chose it.
    After: Efron and Morris 1973 (empirical Bayes)
    """
    strength = np.maximum(np.mean(evidence**2, axis=0) - sd**2, 1e-9 * sd**2)
    share = (people / max(float(people.mean()), 1e-12)) ** (2.0 * _SPREAD)
    variance = strength * (share / max(float(share.mean()), 1e-12))[:, None]
    return np.asarray(evidence * variance / (variance + sd**2))
