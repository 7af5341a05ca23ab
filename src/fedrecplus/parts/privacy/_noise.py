"""Noise: keyed Gaussians for simulations, and a discrete Gaussian from the operating system's generator for devices.

A Gaussian in floating point has gaps that give values away (Mironov 2012), and a keyed one can be drawn again by
whoever knows the key. Both are for simulation, and results say so (``seeded_noise``). Real noise is an integer in the
ring, and its uniform bits come from ``os.urandom``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedrecplus.randomness import keys, normal, subkey

Array = NDArray[np.float64]
Words = Callable[[int], NDArray[np.uint64]]
"""so many uniform 64-bit words"""
_FARTHEST = 12.0
"""standard deviations; beyond it the discrete Gaussian has less than 2⁻¹⁰⁰ of its mass"""


def seeded_gaussian(key: int, shape: tuple[int, ...]) -> Array:
    """Standard normal draws of a key: the same key gives the same noise, so that a resumed run releases nothing new."""
    cells = np.arange(int(np.prod(shape)), dtype=np.uint64)
    return normal(subkey(key, "noise"), cells).reshape(shape)


def discrete_gaussian(scale: float, size: int, words: Words | None = None) -> NDArray[np.int64]:
    """Integers with probability ∝ exp(−k²/(2 scale²)), by inversion of 64-bit words.

    The table has 64-bit entries, so that the distribution is within 2⁻⁶³ per entry of the exact one.

    After: Canonne, Kamath and Steinke 2020 (the distribution; they sample it by rejection)
    """
    table = _cumulative(float(scale))
    drawn = (os_words if words is None else words)(size)
    return np.searchsorted(table, drawn, side="right").astype(np.int64) - len(table) // 2


def os_words(size: int) -> NDArray[np.uint64]:
    """Uniform words from the operating system's cryptographic generator."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def seeded_words(key: int) -> Words:
    """Uniform words of a key, for simulations and tests."""
    return lambda size: keys(subkey(key, "words"), np.arange(size, dtype=np.uint64))


@functools.lru_cache(maxsize=16)
def _cumulative(scale: float) -> NDArray[np.uint64]:
    """P(k' ≤ k) as a share of 2⁶⁴, for all k but the last; symmetric to the last bit."""
    reach = max(1, int(np.ceil(_FARTHEST * scale)))
    mass = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale).astype(np.longdouble) ** 2)
    below = np.cumsum(mass[:reach]) / mass.sum()
    lower = [int(share) for share in below * np.longdouble(2.0) ** 64]
    upper = [2**64 - share for share in reversed(lower)]
    return np.array([min(share, 2**64 - 1) for share in lower + upper], dtype=np.uint64)
