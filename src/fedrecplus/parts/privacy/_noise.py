"""Noise: a discrete Gaussian from the operating system's generator, and keyed Gaussians for research.

A Gaussian in floating point has gaps that give values away (Mironov 2012), and a keyed one can be drawn again by
whoever knows the key: both are for runs with ``seeded_noise``, which nobody may publish. Real noise is an integer on a
grid or in the ring, and its uniform bits come from ``os.urandom``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.randomness import Key, keys, normal, subkey

Words = Callable[[int], NDArray[np.uint64]]
"""so many uniform 64-bit words"""
_LARGEST, _HALF = np.uint64(2**64 - 1), np.uint64(2**63)


def seeded_gaussian(key: Key, shape: tuple[int, ...]) -> Array:
    """Standard normal draws of a key: the same key gives the same noise, so that a resumed run releases nothing new."""
    cells = np.arange(int(np.prod(shape)), dtype=np.uint64)
    return normal(subkey(key, "noise"), cells).reshape(shape)


def discrete_gaussian(scales: Array, words: Words | None = None) -> NDArray[np.int64]:
    """One integer per scale σ, with probability ∝ exp(−k²/(2σ²)): discrete Laplace draws, accepted by their ratio.

    Uniform numbers are integers; each coin compares 64 random bits with a probability rounded to 64 bits, or to 53
    where the platform's long double is no longer than a double. No other step rounds.

    After: Canonne, Kamath and Steinke 2020, Algorithm 3
    """
    words = os_words if words is None else words
    sigma = np.asarray(scales, dtype=np.float64).ravel()
    drawn, left = np.zeros(len(sigma), dtype=np.int64), np.flatnonzero(sigma > 0.0)
    while len(left):
        s = sigma[left]
        t = np.floor(s).astype(np.int64) + 1
        y = _discrete_laplace(t, words)
        accepted = _coin(((np.abs(y) - s**2 / t) ** 2) / (2.0 * s**2), words)
        drawn[left[accepted]] = y[accepted]
        left = left[~accepted]
    return drawn.reshape(np.shape(scales))


def _discrete_laplace(t: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
    """Integers with probability ∝ exp(−|k|/t). After: Canonne, Kamath and Steinke 2020, Algorithm 2"""
    drawn, left = np.zeros(len(t), dtype=np.int64), np.arange(len(t))
    while len(left):
        u = _below(t[left], words)
        kept = _coin(u / t[left], words)
        left_now, u = left[kept], u[kept]
        v, going = np.zeros(len(u), dtype=np.int64), np.arange(len(u))
        while len(going):
            going = going[_coin(np.ones(len(going)), words)]
            v[going] += 1
        value, negative = u + t[left_now] * v, words(len(u)) >= _HALF
        whole = ~(negative & (value == 0))  # zero would come twice
        drawn[left_now[whole]] = np.where(negative, -value, value)[whole]
        left = np.concatenate([left[~kept], left_now[~whole]])
    return drawn


def _below(bounds: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
    """Uniform integers below each bound, by rejection, so that none is favoured."""
    drawn, left = np.zeros(len(bounds), dtype=np.int64), np.arange(len(bounds))
    while len(left):
        bound, word = bounds[left].astype(np.uint64), words(len(left))
        fair = word <= _LARGEST - (_LARGEST % bound + np.uint64(1)) % bound
        drawn[left[fair]] = (word % bound)[fair].astype(np.int64)
        left = left[~fair]
    return drawn


def _coin(exponents: NDArray[Any], words: Words) -> NDArray[np.bool_]:
    """True with probability exp(−x)."""
    share = np.exp(-np.asarray(exponents, dtype=np.longdouble)) * np.longdouble(2.0) ** 64
    below = np.where(share >= np.longdouble(2.0) ** 64, 0, share).astype(np.uint64)
    return np.asarray((words(len(below)) < below) | (share >= np.longdouble(2.0) ** 64))


def os_words(size: int) -> NDArray[np.uint64]:
    """Uniform words from the operating system's cryptographic generator."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def seeded_words(key: int) -> Words:
    """Uniform words of a key, one after the other, for simulations and tests."""
    drawn = itertools.count()
    return lambda size: keys(subkey(key, "words", next(drawn)), np.arange(size, dtype=np.uint64))
