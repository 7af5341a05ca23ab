"""Which cells of a table are 1, given each row's and column's sums and what is known of each cell beforehand.

Log odds ℓ + α_item + β_item·r + γ_client, with multipliers such that expected counts and sums are as they are known:
the maximum-entropy answer. Items with few cells are enumerated instead, which finds what is certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from fedrecplus.arrays import Array, Items

_SWEEPS = 60
_LARGEST = 12.0
_RIDGE = 1e-3
_ENUMERATED = 12
"""cells of an item at most whose subsets are enumerated"""
_ROUNDING = 0.26
"""how far a public sum may be off, in ratings: averages are published with few digits"""


@dataclass(frozen=True)
class Cells:
    """The rows of all uploads: who uploaded what, with which rating, and the log odds that it is rated."""

    client: Items
    item: Items
    rating: Array
    """as the upload shows it; nan where it doesn't"""
    prior: Array


@dataclass(frozen=True)
class Totals:
    """What is public of items and guessed of clients."""

    counts: Array
    """how many rated each item"""
    sums: Array
    """of their ratings; nan where no average is public"""
    rated: Array
    """how many rows of each client are rated"""


def log_odds(cells: Cells, known: Totals) -> Array:
    """Log odds of each cell, all constraints taken together."""
    usual = known.sums / np.maximum(known.counts, 1.0)
    shown = np.isfinite(cells.rating) & np.isfinite(usual[cells.item])
    off = np.where(shown, cells.rating - usual[cells.item], 0.0)  # of an item's raters these add up to 0
    alpha, beta, gamma = (np.zeros(n) for n in (len(known.counts), len(known.counts), len(known.rated)))
    uploaded = np.bincount(cells.item, minlength=len(known.counts))
    certain = known.counts >= uploaded
    for _ in range(_SWEEPS):
        p = expit(cells.prior + alpha[cells.item] + beta[cells.item] * off + gamma[cells.client])
        a, b = _newton(cells.item, p, off, np.minimum(known.counts, uploaded))
        alpha = np.clip(np.where(certain, _LARGEST, alpha + a), -_LARGEST, _LARGEST)
        beta = np.clip(beta + b, -_LARGEST, _LARGEST)
        p = expit(cells.prior + alpha[cells.item] + beta[cells.item] * off + gamma[cells.client])
        missing = known.rated - np.bincount(cells.client, p, len(gamma))
        slope = np.bincount(cells.client, p * (1.0 - p), len(gamma)) + _RIDGE
        gamma = np.clip(gamma + np.clip(missing / slope, -1.0, 1.0), -_LARGEST, _LARGEST)
    odds = cells.prior + alpha[cells.item] + beta[cells.item] * off + gamma[cells.client]
    return _enumerated(cells, known, cells.prior + gamma[cells.client], odds)


def _newton(item: Items, p: Array, off: Array, counts: Array) -> tuple[Array, Array]:
    """One damped step of (α, β) for each item towards its count, and towards a sum of 0 over its raters' ``off``."""
    items, v = len(counts), p * (1.0 - p)
    m00, m01, m11 = (np.bincount(item, v * off**power, items) + _RIDGE * (power != 1) for power in (0, 1, 2))
    y0, y1 = counts - np.bincount(item, p, items), -np.bincount(item, p * off, items)
    determinant = np.maximum(m00 * m11 - m01**2, 1e-12)
    a, b = (m11 * y0 - m01 * y1) / determinant, (m00 * y1 - m01 * y0) / determinant
    return np.clip(a, -1.0, 1.0), np.clip(b, -0.5, 0.5)


def _enumerated(cells: Cells, known: Totals, prior: Array, odds: Array) -> Array:
    """For items with few cells: the posterior over all subsets that have the item's count and sum."""
    order = np.argsort(cells.item, kind="stable")
    ends = np.searchsorted(cells.item[order], np.arange(len(known.counts) + 1))
    found = odds.copy()
    for item in np.flatnonzero((np.diff(ends) > 0) & (np.diff(ends) <= _ENUMERATED)).tolist():
        rows = order[ends[item] : ends[item + 1]]
        subsets = (np.arange(2 ** len(rows))[:, None] >> np.arange(len(rows))) & 1
        fits = subsets.sum(axis=1) == known.counts[item]
        ratings = cells.rating[rows]
        if np.isfinite(known.sums[item]) and np.isfinite(ratings).all():
            both = fits & (np.abs(subsets @ ratings - known.sums[item]) < _ROUNDING)
            fits = both if both.any() else fits  # a rating was misread
        if not fits.any():
            continue
        weights = subsets[fits] @ prior[rows]
        weights = np.exp(weights - weights.max())
        p = np.clip(weights @ subsets[fits] / weights.sum(), 0.0, 1.0)
        found[rows] = np.clip(np.log(p + 1e-6) - np.log(1.0 - p + 1e-6), -_LARGEST, _LARGEST)
    return found
