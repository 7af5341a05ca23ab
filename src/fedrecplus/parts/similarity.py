"""Cosine similarity between encoded items, rounded so that ties are ties in every engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DECIMALS = 10
"""similarities closer than this are the same; the lower item number then comes first"""


def similarity(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sim(E_r, E_un) for all pairs of rows, which have length one. Paper: Eq. (9)"""
    return np.round(first @ second.T, DECIMALS)


def unit_rows(E: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of length one, so that a product of rows is their cosine; zero rows stay zero."""
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(E, lengths, out=np.zeros_like(E, dtype=np.float64), where=lengths > 0)
    return unit
