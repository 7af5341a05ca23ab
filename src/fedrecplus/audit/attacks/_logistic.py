"""A small logistic regression with squares and products of its inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedrecplus.arrays import Array

_RIDGES = (4000.0, 300.0, 20.0)
"""from the strongest on: each starts where the one before it ended"""
_STEPS = 12
_SMALL = 1e-3
_LARGEST = 4.0


@dataclass(frozen=True)
class LogisticModel:
    """Coefficients, what the inputs are centred and scaled by, and how many of them are multiplied with each other."""

    weights: Array
    centre: Array
    scale: Array
    crossed: int


def fit(X: Array, y: NDArray[np.bool_], crossed: int, known: Array, held_out: NDArray[np.bool_]) -> LogisticModel:
    """The penalised likelihood's maximum, of what comes on top of ``known`` log odds.

    The first ``crossed`` inputs come with all their products, the others with their squares. How far weights are shrunk
    is chosen by the rows held out: little where rows give themselves away, much where they hardly do.
    """
    wide = _wide(X, crossed)
    centre, scale = wide.mean(axis=0), wide.std(axis=0)
    scale = np.where(scale > 1e-9, scale, np.inf)
    Z = np.hstack([np.ones((len(X), 1)), (wide - centre) / scale])
    kept, out = ~held_out, held_out
    weights, least, best = np.zeros(Z.shape[1]), np.inf, _RIDGES[0]
    for ridge in _RIDGES:
        weights = _newton(Z[kept], y[kept], known[kept], ridge, weights)
        odds = known[out] + Z[out] @ weights
        loss = float(np.logaddexp(0.0, np.where(y[out], -odds, odds)).sum())
        if loss >= least:
            break
        least, best = loss, ridge
    return LogisticModel(_newton(Z, y, known, best, weights), centre, scale, crossed)


def _newton(Z: Array, y: NDArray[np.bool_], known: Array, ridge: float, start: Array) -> Array:
    """Newton's method; the constant is not penalised."""
    penalty = np.full(Z.shape[1], ridge)
    penalty[0] = 1e-6
    weights = start
    for _ in range(_STEPS):
        p = expit(known + Z @ weights)
        gradient = Z.T @ (y - p) - penalty * weights
        curvature = (Z * (p * (1.0 - p) + 1e-9)[:, None]).T @ Z + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights = weights + step
        if np.abs(step).max() < _SMALL:
            break
    return weights


def log_odds(model: LogisticModel, X: Array) -> Array:
    """Log odds of each row, on top of those that were known."""
    odds: Array = model.weights[0] + ((_wide(X, model.crossed) - model.centre) / model.scale) @ model.weights[1:]
    return odds


def _wide(X: Array, crossed: int) -> Array:
    X = np.clip(X, -_LARGEST, _LARGEST)
    first, second = np.triu_indices(min(crossed, X.shape[1]))
    return np.hstack([X, X[:, first] * X[:, second], X[:, crossed:] ** 2])
