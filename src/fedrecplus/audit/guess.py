"""What an attack says."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedrecplus.arrays import Array, Items


@dataclass(frozen=True)
class Guess:
    """What an attack says of one upload: two numbers for each of its rows."""

    round: int
    items: Items
    ratings: Array
    """the rating behind each row, in standard units; nan where the attack has no opinion"""
    rated: Array
    """greater where the row is more likely to be really rated; comparable within the upload only"""
    told: Items = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """items whose ratings the attacker had beforehand: nothing is asked about them"""


def silent(items: Items) -> Array:
    """No opinion on any rating."""
    return np.full(len(items), np.nan)
