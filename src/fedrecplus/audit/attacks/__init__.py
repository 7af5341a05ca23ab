"""Attacks on what a server sees: a file is an attack."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from fedrecplus.audit.guess import Guess
from fedrecplus.audit.transcript import Transcript
from fedrecplus.parts.part import Part, S

SIGHTS = ("values", "lists", "sums", "statistics")
"""what there may be to look at"""
KNOWINGS = ("nothing", "second data set", "everybody else")
"""what an attacker may know besides what the server sees and what is public, from the least to the most"""


class Attack(Part[S]):
    """What somebody with a server's notes says of a client."""

    kind: ClassVar[str] = "attack"
    label: ClassVar[str] = "attack"
    SEES: ClassVar[tuple[str, ...]] = ("values",)
    """what it can look at, one of which must be seen: ``values`` and ``lists`` of rows of single uploads, ``sums``, or
    public ``statistics``"""
    KNOWING: ClassVar[str] = KNOWINGS[0]
    """what it assumes the attacker to have besides"""

    @abstractmethod
    def attack(self, transcript: Transcript, client: int) -> Sequence[Guess]:
        """Guesses of the rows of some of a client's uploads."""
