"""Whether lists should follow what was chosen last, and how closely: by validation on training data.

Clients keep their last choices back, one after the other, rank each by those before it under every decay, and add up
its NDCG: a federation needs one more secure sum of a few numbers. Where no decay is surely better than none, none is
taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import Ratings
from fedrecplus.engines import Problem, engine_of, item_columns, start_private, statistics_budget
from fedrecplus.parts import DECAYS, VALIDATED, recency_weights
from fedrecplus.randomness import uniform
from fedrecplus.rounds import plan_of
from fedrecplus.training.evaluation import Predictor
from fedrecplus.training.ranking import blocks, cells, clients_with_ratings

_MOST_CLIENTS = 1_000
"""who validate: so many, drawn by a fixed key"""
_KEPT_BACK = 3
"""choices of each that are kept back in turn"""
_FEWEST_BEFORE = 2
_SURE = 3.0
"""standard errors by which a decay must be better than none, and than order that says nothing"""
_DEPTH = 10
_EXTREMES = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
Array = NDArray[np.float64]


class Decay(NamedTuple):
    """How closely lists follow what was chosen last, and how well they then rank last choices."""

    decay: float
    """0: not at all"""
    ndcg: float = 0.0
    """the sum over kept-back choices, where validation chose"""


def chosen_decay(problem: Problem, V: NDArray[Any]) -> Decay:
    """The setting or, where it leaves it to validation, the decay that ranks last choices best.

    Under a budget nothing is validated: which decay was best would be released beside it.
    """
    if problem.config.model.recency != VALIDATED:
        return Decay(problem.config.model.recency)
    if not is_validated(problem.config, problem.ratings):
        return Decay(0.0)
    ndcg = ndcg_of_decays(problem, V, (0.0, *DECAYS, math.inf))
    best = best_of(ndcg)
    sure = all(_surely_better(ndcg[best], ndcg[other]) for other in (0.0, math.inf))
    return Decay(best, float(ndcg[best].sum())) if sure else Decay(0.0)


def is_validated(config: Config, ratings: Ratings) -> bool:
    """Whether it is left to validation how lists follow an order, and one is known."""
    budget = plan_of(config) is not None or statistics_budget(config) is not None
    return config.model.recency == VALIDATED and ratings.timestamps is not None and not budget


def ndcg_of_decays(problem: Problem, V: NDArray[Any], decays: Sequence[float]) -> dict[float, Array]:
    """By decay, how well each kept-back choice is ranked, in NDCG@10; 0 is the list without order.

    An infinite one tells what order has no part in: lists that follow also have another ridge and no ratings.
    On the processor, whatever engine trained: models that follow an order solve for their weights and keep none. Lists
    that follow are made of choices alone, so ratings are regressed on for the list without order only.
    """
    ndcg: dict[float, list[Array]] = {decay: [] for decay in decays}
    X = item_columns(problem, V)
    engine, private = engine_of(replace(problem.config, engine="fast")), start_private(problem, X.dtype.type)
    for known, ages, last in kept_back(problem.ratings):
        own = replace(problem, ratings=known)
        W = engine.user_weights(own, private, X) if 0.0 in decays else np.zeros((known.clients, X.shape[1]), X.dtype)
        for decay in decays:
            Z = engine.list_weights(own, W, X, recency_weights(ages, decay))
            ndcg[decay].append(ndcg_of_last(known, last, Predictor(W, X, Z)))
    return {decay: np.concatenate(parts) for decay, parts in ndcg.items()}


def best_of(ndcg: dict[float, Array]) -> float:
    """The decay that ranks best."""
    return max(DECAYS, key=lambda decay: float(ndcg[decay].sum()))


def kept_back(ratings: Ratings) -> Iterator[tuple[Ratings, NDArray[np.int32], Ratings]]:
    """Of those who validate: all before the last choice, with their ages then, and that; then all before the last but
    one, and so on."""
    able = np.flatnonzero(np.diff(ratings.indptr) >= _KEPT_BACK + _FEWEST_BEFORE)
    taking_part = np.zeros(ratings.clients, dtype=bool)
    taking_part[able[np.argsort(uniform(0, able), kind="stable")[:_MOST_CLIENTS]]] = True
    own, ages = taking_part[ratings.client_of_rating], ratings.ages()
    assert ages is not None
    for age in range(_KEPT_BACK):
        before = own & (ages > age)
        yield ratings.where(before), ages[before] - age - 1, ratings.where(own & (ages == age))


def ndcg_of_last(known: Ratings, last: Ratings, predictor: Predictor) -> Array:
    """NDCG@10 of each client's one choice among all items that it hasn't rated."""
    ranks = [np.zeros(0, np.int64)]
    for block in blocks(clients_with_ratings(last), last.item_count):
        scores = predictor.scores(block)
        own = scores[cells(last, block)]
        scores[cells(known, block)] = -np.inf
        ranks.append((scores > own[:, None]).sum(axis=1))
    places = np.concatenate(ranks)
    return np.where(places < _DEPTH, 1.0 / np.log2(places + 2.0), 0.0)


def asks_what_is_next(training: Ratings, test: Ratings, decay: float) -> bool:
    """Whether lists should follow what was chosen last: test ratings come next, ``decay`` of a person at most.

    Ours: what is chosen sessions later has little to do with the last choices, and lists that follow them are worse.
    """
    known = np.diff(training.indptr) > 0
    asked = np.diff(test.indptr)[known]
    return bool(asked.sum() <= decay * np.count_nonzero(asked)) and comes_after(training, test)


def comes_after(training: Ratings, test: Ratings) -> bool:
    """Whether everybody's test ratings are later than their training ratings."""
    if training.timestamps is None or test.timestamps is None or len(test) == 0:
        return False
    latest, earliest = (np.full(test.clients, bound, dtype=np.int64) for bound in _EXTREMES)
    np.maximum.at(latest, training.client_of_rating, training.timestamps)
    np.minimum.at(earliest, test.client_of_rating, test.timestamps)
    return bool((earliest >= latest).all())


def _surely_better(ndcg: Array, other: Array) -> bool:
    """Whether it is, by three standard errors of the difference."""
    gains = ndcg - other
    return bool(gains.sum() > _SURE * gains.std() * np.sqrt(len(gains))) if len(gains) else False
