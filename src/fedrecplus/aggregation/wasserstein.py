"""Clients whose update is close to the global one, in Wasserstein distance, count more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._covariance import full_trace, update_variance
from fedrecplus.config.settings import Config

Array = NDArray[np.float64]
SMALLEST = 1e-12
"""distances below this count as this: a client may agree exactly"""


def weight(items: NDArray[np.int64], delta: Array, step: Array, spread: Array, settings: Config) -> float:
    """w = D^(−τ), D the squared distance between the client's update and the global step.

    With τ = 1 the normalised weights are p*.

    Paper: Eq. (19), and without tr(M²) its limit for large batches, Eq. (23)
    Deviation: the temperature, and a floor under D, since an update that agrees exactly has D = 0.
    """
    floor = settings.aggregation.bound * _read(items, _squares(step), settings)
    D = max(distance(items, delta, step, spread, settings), floor, SMALLEST)
    return float(D**-settings.aggregation.temperature)


def distance(items: NDArray[np.int64], delta: Array, step: Array, spread: Array, settings: Config) -> float:
    """D = ‖Kη_L μ_u − η μ_g‖² + tr(M²); the client's whole update Δ is Kη_L μ_u, the applied step is η μ_g.

    Paper: Eq. (18)
    """
    squares = _squares(step)
    squares[items] = _squares(delta - step[items])
    if settings.aggregation.covariance == "full":
        squares += full_trace(items, delta, spread, settings)
    elif settings.aggregation.covariance == "diagonal":
        squares += _squares(np.sqrt(_on_table(items, update_variance(delta, settings), step)) - np.sqrt(spread))
    return _read(items, squares, settings)


def _read(items: NDArray[np.int64], squares: Array, settings: Config) -> float:
    """A sum over the rows that the settings name. Ours: the paper leaves open which rows a sparse update has."""
    rows = settings.aggregation.rows
    if rows == "table":
        return float(squares.sum())
    return float(squares[items].sum() if rows == "own" else squares[items].mean())


def _squares(table: Array) -> Array:
    squares: Array = (table**2).sum(axis=1)
    return squares


def _on_table(items: NDArray[np.int64], rows: Array, like: Array) -> Array:
    table = np.zeros_like(like)
    table[items] = rows
    return table
