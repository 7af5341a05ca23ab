"""The scale that ratings live on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError

LIKES = "0:1:1"
"""the scale of likes, clicks and purchases, where each is a 1"""
MOST_LEVELS = 65536
"""A level number must fit into 16 bits."""

STANDARD_LOW, STANDARD_HIGH = 1.0, 5.0
_TOLERANCE = 1e-4  # of a step: what decimal fractions lose in binary, and a third written as 0.333333


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
        steps = (self.high - self.low) / self.step
        if abs(steps - round(steps)) > _TOLERANCE or round(steps) < 1:
            raise UserError(
                f"{self} is no rating scale: {self.high:g} is not a whole number of steps from {self.low:g}"
            )
        if self.levels > MOST_LEVELS:
            raise UserError(
                f"{self} has {self.levels:,} levels, more than the {MOST_LEVELS:,} that are possible",
                "give a greater step and round the ratings to it",
            )

    @staticmethod
    def parse(text: str) -> Scale:
        """Read a scale as it is written on the command line.

        >>> Scale.parse("0.5:5:0.5")
        Scale(low=0.5, high=5.0, step=0.5)
        """
        try:
            low, high, step = (float(part) for part in text.split(":"))
        except ValueError:
            raise UserError(f"{text!r} is no rating scale", "give low:high:step, such as 1:5:1 or 0.5:5:0.5") from None
        return Scale(low, high, step)

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

    @property
    def level_variance(self) -> float:
        """Variance of the ratings, in standard units, if each level were given equally often.

        >>> Scale(1.0, 5.0, 1.0).level_variance, Scale(0.0, 1.0, 1.0).level_variance
        (2.0, 4.0)
        """
        return self.standard_step**2 * (self.levels**2 - 1) / 12

    def holds(self, ratings: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the ratings are levels of this scale.

        >>> Scale(1, 5, 1).holds(np.array([1.0, 3.5, 6.0])).tolist()
        [True, False, False]
        """
        position = (ratings - self.low) / self.step
        level = np.rint(position)
        on_grid = (np.abs(position - level) <= _TOLERANCE) & (level >= 0) & (level < self.levels)
        return np.asarray(on_grid, dtype=np.bool_)

    def codes(self, ratings: NDArray[Any]) -> NDArray[Any]:
        """The number of the nearest level of each rating, halves up, in the narrowest type that holds them all."""
        nearest = np.floor((ratings - self.low) / self.step + 0.5)
        narrowest = np.uint8 if self.levels <= 256 else np.uint16
        return np.clip(nearest, 0, self.levels - 1).astype(narrowest)

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
