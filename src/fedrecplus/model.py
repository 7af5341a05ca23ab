"""The model: predictions, start values, and which columns are trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import ModelSettings
from fedrecplus.randomness import normal, subkey, uniform

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """Columns of the tables. V has the factors and, in a model with biases, the item bias; U has one column more.

    U's column that meets the item bias is fixed at 1, and U's last column is the user bias (0 without biases).
    """

    factors: int
    biases: bool

    @classmethod
    def of(cls, settings: ModelSettings) -> Shape:
        """The shape that the settings ask for."""
        return cls(settings.factors, settings.biases)

    @property
    def v_columns(self) -> int:
        """Columns of V: what a row of an upload holds."""
        return self.factors + self.biases

    @property
    def u_columns(self) -> int:
        """Columns of U."""
        return self.v_columns + 1

    @property
    def u_trained(self) -> Array:
        """1 for the columns of U that training moves, 0 for the others."""
        return np.array([1.0] * self.factors + [0.0] * self.biases + [float(self.biases)])


def predict(U: Array, V: Array, mean: float) -> Array:
    """Ratings of one client for the rows of V: r̂ = U·V (with biases: mean + b_u + b_i + U·V). Paper: Eq. (1)"""
    ratings: Array = mean + V @ U[:-1] + U[-1]
    return ratings


def start_point(settings: ModelSettings, mean: float) -> float:
    """The common value of all factors at the start, before noise.

    A constant √(c/d) makes every first prediction c. Ours: near-zero starts sit on a plateau for tens of rounds.
    """
    if settings.start != "constant":
        return 0.0
    return float(np.sqrt(max(settings.start_rating - mean, 0.0) / settings.factors))


def prior(settings: ModelSettings, mean: float) -> tuple[Array, Array]:
    """What weight decay pulls a row of U and a row of V towards."""
    shape = Shape.of(settings)
    V_prior = np.zeros(shape.v_columns)
    U_prior = np.zeros(shape.u_columns)
    if settings.shrink_to == "start":
        V_prior[: shape.factors] = U_prior[: shape.factors] = start_point(settings, mean)
    return U_prior, V_prior


def mean_row(V: Array, popularity: NDArray[Any]) -> Array:
    """The row of V that ratings have on average: popular items count more."""
    weights = popularity / max(popularity.sum(), 1)
    mean: Array = weights @ V.astype(np.float64)
    return mean


def typical(V: Array, popularity: NDArray[Any], rating: float, settings: ModelSettings, mean: float) -> Array:
    """The U along the mean row whose predictions are nearest to ``rating``, the mean of all ratings.

    Where the mean row says nothing, as before training from a start around zero, it is zero.
    Ours: who has rated next to nothing is best taken for an average person, not for one who rates everything zero.
    """
    shape = Shape.of(settings)
    average = mean_row(V, popularity)
    rest = rating - mean - (average[shape.factors] if shape.biases else 0.0)
    average = average[: shape.factors]
    along = V[:, : shape.factors].astype(np.float64) @ average
    square = float(popularity @ along**2)
    U = np.zeros(shape.u_columns)
    if square > 0.0:
        U[: shape.factors] = rest * float(popularity @ along) / square * average
    return U


def start_rows(key: int, rows: NDArray[np.int64], columns: int, settings: ModelSettings, mean: float) -> Array:
    """Start values of some rows of a table: the same for a row whoever asks, and whatever other rows are asked for."""
    factors = settings.factors
    cells = rows[:, None].astype(np.uint64) * np.uint64(factors) + np.arange(factors, dtype=np.uint64)
    if settings.start == "uniform":
        noise = settings.start_spread * (2.0 * uniform(key, cells) - 1.0)
    else:
        noise = settings.start_spread * normal(key, cells)
    table = np.zeros((len(rows), columns))
    table[:, :factors] = start_point(settings, mean) + noise
    return table


def start_V(seed: int, items: int, settings: ModelSettings, mean: float) -> Array:
    """The item table before training."""
    columns = Shape.of(settings).v_columns
    return start_rows(subkey(seed, "start-V"), np.arange(items), columns, settings, mean)


def start_U(seed: int, clients: NDArray[np.int64], settings: ModelSettings, mean: float) -> Array:
    """Some clients' factors before training."""
    shape = Shape.of(settings)
    table = start_rows(subkey(seed, "start-U"), clients, shape.u_columns, settings, mean)
    if shape.biases:
        table[:, shape.factors] = 1.0
    return table
