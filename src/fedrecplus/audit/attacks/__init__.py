"""Attacks on what a server sees: a file is an attack."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.transcript import Transcript as Transcript
from fedrecplus.parts import Part, S

SIGHTS = ("values", "lists", "sums", "statistics")
"""what there may be to look at"""
KNOWINGS = ("nothing", "some ratings", "second data set", "everybody else")
"""what an attacker may know besides what the server sees and what is public, from the least to the most"""


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


class Attack(Part[S]):
    """What somebody with a server's notes says of a client."""

    kind: ClassVar[str] = "attack"
    label: ClassVar[str] = "attack"
    SEES: ClassVar[tuple[str, ...]] = ("values",)
    """what it can look at, one of which must be seen: ``values`` and ``lists`` of rows of single uploads, ``sums``, or
    public ``statistics``"""
    KNOWING: ClassVar[str] = KNOWINGS[0]
    """what it assumes the attacker to have besides"""
    ANONYMOUS: ClassVar[bool] = False
    """whether its guesses are profiles of whom it doesn't know: a person is compared with the one that fits best, and
    so is the control"""
    LOG_ODDS: ClassVar[bool] = False
    """whether scores of different people are on one scale: they are then also reported by how many rated an item"""

    @abstractmethod
    def attack(self, transcript: Transcript, client: int) -> Sequence[Guess]:
        """Guesses of the rows of some of a client's uploads."""
