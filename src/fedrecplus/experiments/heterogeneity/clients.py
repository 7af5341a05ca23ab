"""Clients that are not like the others: what becomes of their ratings, who takes part, and who attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.data import STANDARD_HIGH, Ratings
from fedrecplus.engines import Engine, PrivateState, Problem, item_columns
from fedrecplus.experiments.heterogeneity.fedeba import FedEbaEngine
from fedrecplus.experiments.heterogeneity.wrapped_engine import WrappedEngine
from fedrecplus.parts.aggregation import WeightedAggregation
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.randomness import keys, normal, subkey, uniform
from fedrecplus.rounds import weights_of

Mask = NDArray[np.bool_]
Clients = NDArray[np.int64]
Change = Callable[[Ratings, Mask, int], Ratings]

NOISE = 1.5
"""standard deviation of a noisy client's error, in standard units: a star and a half"""
FEW = 5
"""ratings that a client with few ratings is left with"""
RAREST, MOST_RARE = 5, 20
"""raters of an item worth promoting: known, and not yet popular"""
LEAST_OFTEN = 0.02
"""how often the client that takes part least takes part"""


def affected_clients(ratings: Ratings, share: float, seed: int) -> Mask:
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


def shift(ratings: Ratings, who: Mask, seed: int) -> Ratings:
    """All ratings are a star and a half lower, and on the scale again: clients that are hard to please."""
    lower = ratings.scale.codes(ratings.scale.restore(ratings.standard_values - NOISE))
    return replace(ratings, codes=np.where(who[ratings.client_of_rating], lower, ratings.codes))


def rotate(ratings: Ratings, who: Mask, seed: int) -> Ratings:
    """Each client's ratings move on by one of its items, in an order that is drawn: its own ratings, another taste."""
    client = ratings.client_of_rating
    order = np.lexsort((keys(subkey(seed, "rotated-ratings"), np.arange(len(ratings))), client))
    first, last = ratings.indptr[client], ratings.indptr[client + 1] - 1
    place = np.arange(len(ratings))
    following = np.where(place == last, first, place + 1)
    codes = np.empty_like(ratings.codes)
    codes[order] = ratings.codes[order[following]]
    return replace(ratings, codes=np.where(who[client], codes, ratings.codes))


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
    return replace(
        ratings, indptr=indptr, items=items[order], codes=codes[order], timestamps=None, order=None, folds=None
    )


@dataclass(frozen=True)
class SkewedProblem(Problem):
    """A simulation in which some clients take part nearly always and others hardly ever."""

    def cohort(self, round_number: int) -> Clients:
        """Each client comes with a probability of its own, log-uniform from ``LEAST_OFTEN`` to 1."""
        able = super().cohort(round_number)
        often = LEAST_OFTEN ** uniform(subkey(self.config.seed, "participation"), able)
        here = able[uniform(subkey(self.config.seed, "skewed", round_number), able) < often]
        return here if len(here) else able[:1]


class AttackedEngine(WrappedEngine):
    """Rounds in which attackers, who know how they are weighed, replace their uploads.

    They send the last step back: at no distance from it, they earn all the weight there is. Where an item is to be
    pushed, its row gets what would make the attacker's own prediction the best rating at once.
    """

    def __init__(self, engine: Engine, attackers: Mask, target: int | None) -> None:
        super().__init__(engine)
        self.attackers, self.target = attackers, target
        self.weight_shares: list[float] = []
        """the attackers' share of all weight, round by round; empty under a rule that gives no weights"""

    def join(self, problem: Problem, uploads: Sequence[Upload], message: Broadcast) -> tuple[Sums, Traffic]:
        """As the other engine does; the attackers' share is noted."""
        if isinstance(problem.config.aggregation, WeightedAggregation):
            weights = self._weights(uploads, message, problem)
            attacking = self.attackers[[upload.client for upload in uploads]]
            self.weight_shares.append(float(weights[attacking].sum() / max(weights.sum(), 1e-300)))
        return self.engine.join(problem, uploads, message)

    def _weights(self, uploads: Sequence[Upload], message: Broadcast, problem: Problem) -> Array:
        if isinstance(self.engine, FedEbaEngine):
            return self.engine.weights(uploads)
        return np.array(weights_of(uploads, message, problem.config))

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """See ``Engine.uploads``."""
        uploads, private = self.engine.uploads(problem, private, message, clients)
        push = self._push(problem, private, message)
        whole = problem.config.aggregation.over_table
        return [self._forge(u, message, push, whole) if self.attackers[u.client] else u for u in uploads], private

    def _forge(self, upload: Upload, message: Broadcast, push: NDArray[Any] | None, whole: bool) -> Upload:
        """The last step's rows; all of them where distances run over the whole table: a missing row counts there."""
        items = np.arange(len(message.V)) if whole else upload.items
        delta = message.last_step[items].astype(np.float64)
        if push is not None:
            delta[items == self.target] += push[upload.client]
        return replace(upload, items=items, delta=delta)

    def _push(self, problem: Problem, private: PrivateState, message: Broadcast) -> NDArray[Any] | None:
        """Every client's change of the target's row that would make its own prediction the best rating."""
        if self.target is None:
            return None
        X = item_columns(problem, message.V)
        W = self.engine.user_weights(problem, private, X).astype(np.float64)
        factor_weights = W[
            :, (item_columns(problem, message.V + 1.0) != X).any(axis=0)
        ]  # the columns of X that are V's
        missing = STANDARD_HIGH - W @ X[self.target].astype(np.float64)
        push: NDArray[Any] = (
            missing[:, None] * factor_weights / np.maximum((factor_weights**2).sum(axis=1), 1e-9)[:, None]
        )
        return push
