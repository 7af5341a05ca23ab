"""The scale that ratings live on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError

STANDARD_LOW, STANDARD_HIGH = 1.0, 5.0


@dataclass(frozen=True)
class Scale:
    """Ratings run from ``low`` to ``high`` in steps of ``step``.

    Models always train on the *standard* scale, 1 to 5, so that step sizes and regularisation mean the same on half
    stars as on 0 to 100. On a 1-to-5 scale that is the identity.

    >>> Scale(0.5, 5.0, 0.5).levels
    10
    >>> Scale(0.0, 100.0, 1.0).standardise(np.array([0.0, 50.0, 100.0])).tolist()
    [1.0, 3.0, 5.0]
    """

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high, self.step]).all() and self.high > self.low and self.step > 0):
            raise UserError(f"{self} is no rating scale", "give low:high:step with low < high and step > 0")

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g}:{self.step:g}"

    @property
    def levels(self) -> int:
        """How many different ratings there are."""
        return round((self.high - self.low) / self.step) + 1

    @property
    def standard_step(self) -> float:
        """The step, in standard units."""
        return (STANDARD_HIGH - STANDARD_LOW) * self.step / (self.high - self.low)

    def values(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Level numbers (0, 1, …) as ratings."""
        return self.low + self.step * codes.astype(np.float64)

    def standardise(self, ratings: NDArray[Any]) -> NDArray[np.float64]:
        """Ratings in standard units."""
        share = (ratings - self.low) / (self.high - self.low)
        return np.asarray(STANDARD_LOW + (STANDARD_HIGH - STANDARD_LOW) * share, dtype=np.float64)

    def restore(self, standard: NDArray[Any]) -> NDArray[np.float64]:
        """Standard units as ratings, clipped to the scale."""
        share = (standard - STANDARD_LOW) / (STANDARD_HIGH - STANDARD_LOW)
        return np.asarray(np.clip(self.low + (self.high - self.low) * share, self.low, self.high), dtype=np.float64)
