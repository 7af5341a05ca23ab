"""What an attack is and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts import Kind, Part

ATTACKS = Kind("attack", "fedrecplus.audit.attacks", (("attack",),), "attack")
"""a file is an attack: ``attack(transcript, client) -> guesses``; its own ``Settings``, if any, come third

``SEES`` names what it can look at, one of which must be seen: ``values`` and ``lists`` of rows of single uploads,
``sums``, or public ``statistics``. A file that says nothing looks at values. ``KNOWING`` names what it assumes the
attacker to have besides: see ``KNOWINGS``. ``ANONYMOUS = True`` says that its guesses are profiles of whom it doesn't
know: a person is compared with the one that fits best, and so is the control. ``LOG_ODDS = True`` says that its scores
of different people are on one scale: they are then also reported by how many rated an item.
"""

SIGHTS = ("values", "lists", "sums", "statistics")
"""what there may be to look at"""
KNOWINGS = ("nothing", "some ratings", "second data set", "everybody else")
"""what an attacker may know besides what the server sees and what is public, from the least to the most"""


def sees(attack: Part) -> frozenset[str]:
    """What an attack can look at."""
    return frozenset(getattr(attack.module, "SEES", ("values",)))


def knowing(attack: Part) -> str:
    """What an attack assumes the attacker to know."""
    return str(getattr(attack.module, "KNOWING", KNOWINGS[0]))


def on_one_scale(attack: Part) -> bool:
    """Whether scores of different people can be compared."""
    return bool(getattr(attack.module, "LOG_ODDS", False))


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
    told: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """items whose ratings the attacker had beforehand: nothing is asked about them"""


def silent(items: NDArray[np.int64]) -> NDArray[np.float64]:
    """No opinion on any rating."""
    return np.full(len(items), np.nan)
