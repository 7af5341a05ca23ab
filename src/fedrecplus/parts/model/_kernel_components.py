"""Columns by which a person's ridge regression of ratings follows curves: principal components of a kernel over items.

Ridge regression on all components of a kernel is a Gaussian process over items. They are computed from tables that
everybody has, so nothing more is sent and nothing more is seen.

After: Williams and Seeger 2000 (Nyström), Schölkopf, Smola and Müller 1998 (kernel principal components)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array

_LANDMARKS = 1024
"""items that the kernel is decomposed over, those with the most ratings: the cube of them is what it costs"""
_COMPONENTS = 256
"""of the kernel at most: a person's solve takes time with the square of them"""
_LENGTH = 0.3
"""of the kernel, as a share of how far two items are apart on average"""
_ITEMS = 4096
"""at a time, since a catalogue may have many more than landmarks"""
_LEAST = 1e-6
"""a component's share of the largest one's strength, below which it is rounding"""


def kernel_components(groups: list[NDArray[Any]], counts: NDArray[Any]) -> Array:
    """A row of at most 256 columns for each item, whose inner products are exp(−|f_i − f_j|²/2ℓ²), nearly.

    f_i are an item's columns, each group of them with a variance of 1 in all over ratings. An item without a likeness
    among those with the most ratings has a row near 0, and is predicted as without.

    >>> counts = np.array([9, 8, 7, 1])
    >>> features = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]])
    >>> components = kernel_components([features], counts)
    >>> np.round(components @ components.T, 2)[0].tolist()
    [1.0, 0.97, 0.0, 0.0]
    """
    shares = counts / max(counts.sum(), 1)
    features = np.hstack([_standardised(group.astype(np.float64), shares) for group in groups])
    landmarks = features[np.sort(np.argsort(-counts, kind="stable")[:_LANDMARKS])]
    width = 2.0 * _LENGTH**2 * 2.0 * len(groups)
    strengths, directions = np.linalg.eigh(_kernel(landmarks, landmarks, width))
    kept = np.arange(len(strengths)) >= len(strengths) - _COMPONENTS
    kept &= strengths > _LEAST * strengths[-1]
    components = directions[:, kept] / np.sqrt(strengths[kept])
    blocks = np.split(features, range(_ITEMS, len(features), _ITEMS))
    return np.concatenate([_kernel(block, landmarks, width) @ components for block in blocks])


def _standardised(group: Array, shares: Array) -> Array:
    """Columns with mean 0 and a sum of variances of 1 over ratings."""
    centred = group - shares @ group
    deviation = float(np.sqrt(shares @ np.square(centred).sum(axis=1)))
    return centred / deviation if deviation > 0.0 else np.zeros_like(centred)


def _kernel(first: Array, second: Array, width: float) -> Array:
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1) - 2.0 * first @ second.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / width))
