"""What an attacker who knows the rules may assume of them: each part says it of itself, as ``ATTACKER``.

Attacks ask the part and never its name. Of a part that says nothing they assume whatever serves them best.
"""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True)
class OfModel:
    """What an upload of a model r̂ = X·w says: a model's ``attacker`` returns it.

    Beside it, ``gradient_rows(delta, items, used, broadcast)`` gives A from an upload's rows Δ, where A_i = e_i·w over
    the ``shown`` columns of X, e_i is the row's residual after w was fitted, and ``used`` says which rows w was fitted
    to. Models that take steps derive from ``Mf``; models that solve for w have ``ridge_and_prior(size, items, used,
    public)``, and then Σ used e x = ridge·(w − prior) over all columns whose weights aren't known. Where w is fitted to
    other columns than those of ``item_columns``, ``solved_columns(V, public)`` gives them, and X means these.
    """

    shown: slice
    """columns of X whose weights multiply the residuals in an upload"""
    known: Mapping[int, float]
    """columns of X whose weights everybody knows"""
    fitted: Literal["by steps", "exactly"]
    """how w comes about"""
    over: Literal["all", "rated"]
    """rows that w is fitted to"""
