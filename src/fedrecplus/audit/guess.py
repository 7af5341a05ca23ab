"""What an attack says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Guess:
    """What an attack says of one upload: two numbers for each of its rows."""

    round: int
    items: NDArray[np.int64]
    ratings: NDArray[np.float64]
    """the rating behind each row, in standard units; nan where the attack has no opinion"""
    rated: NDArray[np.float64]
    """greater where the row is more likely to be really rated; comparable within the upload only"""


def silent(items: NDArray[np.int64]) -> NDArray[np.float64]:
    """No opinion on any rating."""
    return np.full(len(items), np.nan)
