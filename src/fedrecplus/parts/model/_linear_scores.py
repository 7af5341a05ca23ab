"""Clicks scored by a linear function on the device: σ(w·x_i + b), where x is the shared table or one of its own."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, namespace, product, zeros
from fedrecplus.parts.model._clicks import ClickModel, ClickSettings
from fedrecplus.randomness import subkey, uniform

_LARGEST = 30.0
"""log odds beyond this are certain"""
_NEWCOMER_STEPS, _NEWCOMER_RATE = 200, 0.1
"""on a newcomer's score function, from zero"""
C = TypeVar("C", bound=ClickSettings)


class LinearScores(ClickModel[C]):
    """(w, b) are all that is private, beside a table of the device's own where it has one."""

    def fitted(self, table: NDArray[Any], dense: NDArray[Any], clicked: Array, weights: Array) -> Array:
        """The score function after many steps with the table as it is."""
        xp, score = namespace(weights), zeros((*clicked.shape[:-1], self.user_columns), table)
        share = weights / xp.clip(xp.sum(weights, axis=-1)[..., None], 1.0, None)
        for _ in range(_NEWCOMER_STEPS):
            score = score + _NEWCOMER_RATE * ascent(table, score, clicked, share)
        return score

    def start_score(self, seed: int) -> Array:
        """(w, b) before training, the same for everybody: noise."""
        draws = uniform(subkey(seed, "start-score"), np.arange(self.user_columns))
        return np.asarray((2.0 * draws - 1.0) / np.sqrt(self.user_columns - 1))


def shares(items: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Weights of a mean over the rows that there are."""
    xp = namespace(items)
    present = xp.astype(items >= 0, dtype)
    return present / xp.clip(xp.sum(present, axis=-1)[..., None], 1.0, None)  # type: ignore[no-any-return]


def batches(rows: int, size: int) -> list[slice]:
    """Rows of each local step, in their order; all at once where the size is 0."""
    return [slice(first, first + size) for first in range(0, rows, size)] if size else [slice(None)]


def ascent(table: Array, score: Array, clicked: Array, share: Array) -> Array:
    """How (w, b) lower the mean logistic loss: minus its gradient."""
    xp, errors = namespace(table), share * (clicked - chances(table, score))
    pull = product(xp.matrix_transpose(table), errors)
    return xp.concat([pull, xp.sum(errors, axis=-1)[..., None]], axis=-1)  # type: ignore[no-any-return]


def log_odds(table: NDArray[Any], score: NDArray[Any]) -> NDArray[Any]:
    """w·x_i + b for all rows."""
    odds: NDArray[Any] = product(table, score[..., :-1]) + score[..., -1:]
    return odds


def chances(table: NDArray[Any], score: NDArray[Any]) -> NDArray[Any]:
    """σ(w·x_i + b)."""
    xp = namespace(table)
    return 1.0 / (1.0 + xp.exp(-xp.clip(log_odds(table, score), -_LARGEST, _LARGEST)))  # type: ignore[no-any-return]
