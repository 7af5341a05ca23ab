"""What an attacker who knows the rules may assume of them: each part says it of itself, as ``ATTACKER``.

Attacks ask the part and never its name. Of a part that says nothing they assume whatever serves them best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class OfPseudoItems:
    """How a set of pseudo items differs from a set of rated ones."""

    popularity: float
    """how much more popular rated items are than pseudo items: a weight on log popularity, 0 where they are alike"""
    co_occurrence: Literal["rated", "pseudo", "neither"]
    """which rows are uploaded together by many clients more often than chance: the rated, the pseudo, or neither"""
    most_similar: bool = False
    """whether the set is the top k by similarity to something rated, so that rated items have all near ones inside"""


@dataclass(frozen=True)
class OfVirtualRatings:
    """How virtual ratings differ from real ones."""

    residual: float
    """weight on a row's residual: positive where those of virtual ratings are smaller, negative where larger"""
    copied: Literal["nearest", "drawn", "no"] = "no"
    """whether a virtual rating is one of the client's own: the most similar item's, or one drawn by ``weights``"""
