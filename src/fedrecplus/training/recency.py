"""Whether lists should follow what was chosen last, and how closely: by validation on training data.

Clients keep their last choices back, one after the other, rank each by those before it under every decay, and add up
its NDCG: a federation needs one more secure sum of a few numbers. Where no decay is surely better than none, none is
taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def chosen_decay(problem: Problem, V: NDArray[Any]) -> float:
    """The setting or, where it leaves it to validation, the decay that ranks last choices best; 0: none.

    Under a budget nothing is validated: which decay was best would be released beside it.
    """
    model, config = problem.config.model, problem.config
    if model.recency != VALIDATED:
        return model.recency
    if problem.ratings.timestamps is None or plan_of(config) is not None or statistics_budget(config) is not None:
        return 0.0
    gains = gains_of_decays(problem, item_columns(problem, V))
    if not gains:
        return 0.0
    best = max(DECAYS, key=lambda decay: gains[decay].mean())
    return best if _surely_positive(gains[best]) and _surely_positive(gains[best] - gains[math.inf]) else 0.0


def gains_of_decays(problem: Problem, X: NDArray[Any]) -> dict[float, Array]:
    """By decay, how much better than by the list without order each kept-back choice is ranked, in NDCG@10.

    An infinite one tells what order has no part in: lists that follow also have another ridge and no ratings.
    On the processor, whatever engine trained: models that follow an order solve for their weights and keep none.
    """
    gains: dict[float, list[Array]] = {decay: [] for decay in (*DECAYS, math.inf)}
    engine, private = engine_of(replace(problem.config, engine="fast")), start_private(problem, X.dtype.type)
    for known, ages, last in kept_back(problem.ratings):
        own = replace(problem, ratings=known)
        W = engine.user_weights(own, private, X)
        plain = ndcg_of_last(known, last, Predictor(W, X, engine.list_weights(own, W, X)))
        for decay in gains:
            Z = engine.list_weights(own, W, X, recency_weights(ages, decay))
            gains[decay].append(ndcg_of_last(known, last, Predictor(W, X, Z)) - plain)
    return {decay: np.concatenate(parts) for decay, parts in gains.items() if sum(map(len, parts))}


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
    ranks = []
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


def _surely_positive(gains: Array) -> bool:
    return bool(gains.mean() > _SURE * gains.std() / np.sqrt(len(gains)))
