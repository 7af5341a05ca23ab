"""Clients that are not like the others: what becomes of their ratings, and who takes part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.randomness import keys, normal, subkey, uniform
from fedrecplus.simulation import Problem

Mask = NDArray[np.bool_]
Change = Callable[[Ratings, Mask, int], Ratings]

NOISE = 1.5
"""standard deviation of a noisy client's error, in standard units: a star and a half"""
FEW = 5
"""ratings that a client with few ratings is left with"""
RAREST, MOST_RARE = 5, 20
"""raters of an item worth promoting: known, and not yet popular"""
LEAST_OFTEN = 0.02
"""how often the least willing client takes part"""


def affected(ratings: Ratings, share: float, seed: int) -> Mask:
    """A share of the clients with ratings, drawn by the seed alone: the same ones for every rule and fold."""
    able = np.flatnonzero(np.diff(ratings.indptr) > 0)
    order = np.argsort(uniform(subkey(seed, "affected"), able), kind="stable")
    chosen = np.zeros(ratings.clients, dtype=np.bool_)
    chosen[able[order[: round(share * len(able))]]] = True
    return chosen


def rate_at_random(ratings: Ratings, who: Mask, seed: int) -> Ratings:
    """The items stay, the ratings are drawn from the whole scale."""
    draws = uniform(subkey(seed, "random-ratings"), np.arange(len(ratings)))
    codes = np.floor(draws * ratings.scale.levels).astype(ratings.codes.dtype)
    return replace(ratings, codes=np.where(who[ratings.client_of_rating], codes, ratings.codes))


def add_noise(ratings: Ratings, who: Mask, seed: int) -> Ratings:
    """The ratings are off by a normal error, and on the scale again."""
    noise = NOISE * normal(subkey(seed, "noisy-ratings"), np.arange(len(ratings)))
    noisy = ratings.scale.codes(ratings.scale.restore(ratings.standard_values + noise))
    return replace(ratings, codes=np.where(who[ratings.client_of_rating], noisy, ratings.codes))


def leave_few(ratings: Ratings, who: Mask, seed: int) -> Ratings:
    """All but a few ratings are gone."""
    client = ratings.client_of_rating
    order = np.lexsort((keys(subkey(seed, "few-ratings"), np.arange(len(ratings))), client))
    rank = np.empty(len(ratings), dtype=np.int64)
    rank[order] = np.arange(len(ratings)) - ratings.indptr[client[order]]
    return ratings.where(~who[client] | (rank < FEW))


def promoted_item(ratings: Ratings, seed: int) -> int:
    """The item that attackers want to be liked: one of the little rated ones."""
    counts = ratings.item_counts()
    worth = np.flatnonzero((counts >= RAREST) & (counts <= MOST_RARE))
    worth = worth if len(worth) else np.flatnonzero(counts > 0)
    return int(worth[np.argmin(uniform(subkey(seed, "promoted"), worth))])


def promote(ratings: Ratings, who: Mask, seed: int) -> Ratings:
    """Own ratings stay, for cover; the promoted item gets the best one. After: Lam and Riedl 2004 (shilling)."""
    target, client = promoted_item(ratings, seed), ratings.client_of_rating
    kept = ~(who[client] & (ratings.items == target))
    attackers = np.flatnonzero(who)
    clients = np.concatenate([client[kept], attackers])
    items = np.concatenate([ratings.items[kept], np.full(len(attackers), target, ratings.items.dtype)])
    best = np.full(len(attackers), ratings.scale.levels - 1, ratings.codes.dtype)
    codes = np.concatenate([ratings.codes[kept], best])
    order = np.lexsort((items, clients))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(clients, minlength=ratings.clients))]).astype(np.int64)
    return replace(ratings, indptr=indptr, items=items[order], codes=codes[order])


@dataclass(frozen=True)
class SkewedProblem(Problem):
    """A simulation in which some clients take part nearly always and others hardly ever."""

    def taking_part(self, round_number: int) -> NDArray[np.int64]:
        """Each client comes with its own probability, spread evenly on a logarithmic scale."""
        able = super().taking_part(round_number)
        often = LEAST_OFTEN ** uniform(subkey(self.config.seed, "willingness"), able)
        here = able[uniform(subkey(self.config.seed, "skewed", round_number), able) < often]
        return here if len(here) else able[:1]


def skewed(problem: Problem) -> SkewedProblem:
    """The same simulation with skewed participation."""
    parts: dict[str, Any] = {field.name: getattr(problem, field.name) for field in fields(Problem)}
    return SkewedProblem(**parts)
