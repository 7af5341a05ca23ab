"""What an attack is and what it says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts import Kind, Part

ATTACKS = Kind("attack", "fedrecplus.audit.attacks", (("attack",),), "attack")
"""a file is an attack: ``attack(transcript, client) -> guesses``; its own ``Settings``, if any, come third

``SEES`` names what it can look at, one of which must be seen: ``values`` and ``lists`` of rows of single uploads,
``sums``, or public ``statistics``. A file that says nothing looks at values. ``KNOWING`` names what it assumes the
attacker to have besides: see ``KNOWINGS``. ``ANONYMOUS = True`` says that its guesses are profiles of whom it doesn't
know: a person is compared with the one that fits best, and so is the control.
"""

SIGHTS = ("values", "lists", "sums", "statistics")
"""what there may be to look at"""
KNOWINGS = ("nothing", "second data set", "everybody else")
"""what an attacker may know besides what the server sees and what is public, from the least to the most"""


def sees(attack: Part) -> frozenset[str]:
    """What an attack can look at."""
    return frozenset(getattr(attack.module, "SEES", ("values",)))


def knowing(attack: Part) -> str:
    """What an attack assumes the attacker to know."""
    return str(getattr(attack.module, "KNOWING", KNOWINGS[0]))


def anonymous(attack: Part) -> bool:
    """Whether an attack says somebody's profile, and not whose."""
    return bool(getattr(attack.module, "ANONYMOUS", False))


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
