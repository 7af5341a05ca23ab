"""Predictors that learn next to nothing: what is no better than these is no recommender."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import EvaluationSettings
from fedrecplus.data import Ratings, validation_cut
from fedrecplus.training import Evaluation, Fallback, Predictor, measure, ranking, sampled_ranking, score

_RIDGES = ((5.0, 10.0), (2.0, 2.0), (3.0, 5.0), (10.0, 10.0), (15.0, 10.0), (5.0, 25.0))
"""pseudo-ratings that biases of clients and of items are damped by; the first where there is too little to choose by"""
_SWEEPS = 15
_FEWEST = 100
"""ratings to choose ridges by"""


def global_mean(training: Ratings) -> Predictor:
    """Everybody's mean rating, for everything; a list of the best then holds the most popular."""
    return _of_biases(training, np.zeros(training.clients), np.zeros(training.item_count))


def bias_only(training: Ratings) -> Predictor:
    """μ + b_u + b_i, with damped means as biases, fitted in turns, and ridges that a validation cut chooses.

    After: Koren 2010 (baseline estimates)
    """
    return biases(training, *learned_ridges(training))


def learned_ridges(training: Ratings) -> tuple[float, float]:
    """Those of clients and items that predict a tenth of the ratings best from the rest."""
    if len(training) < _FEWEST:
        return _RIDGES[0]
    fitted, held_out = validation_cut(training)
    clients, items, truth = held_out.client_of_rating, held_out.items, held_out.standard_values
    errors = [((biases(fitted, *ridges).predict(clients, items) - truth) ** 2).mean() for ridges in _RIDGES]
    return _RIDGES[int(np.argmin(errors))]


def biases(training: Ratings, client_ridge: float, item_ridge: float) -> Predictor:
    """The same with ridges that are given."""
    values, clients, items = training.standard_values, training.client_of_rating, training.items
    behind_client, behind_item = np.diff(training.indptr) + client_ridge, training.item_counts() + item_ridge
    rest = values - values.mean()
    of_client = np.zeros(training.clients)
    for _ in range(_SWEEPS):
        of_item = np.bincount(items, rest - of_client[clients], training.item_count) / behind_item
        of_client = np.bincount(clients, rest - of_item[items], training.clients) / behind_client
    return _of_biases(training, of_client, of_item)


def _of_biases(training: Ratings, of_client: Array, of_item: Array) -> Predictor:
    W = np.column_stack([np.ones(training.clients), of_client])
    X = np.column_stack([training.standard_values.mean() + of_item, np.ones(training.item_count)])
    return Predictor(W, X)


def measured(
    predictor: Predictor, training: Ratings, test: Ratings, judging: EvaluationSettings, seed: int
) -> Evaluation:
    """How good a predictor is that has an answer for clients and items without training ratings, too."""
    everything = Fallback.of(training).knowing_everything()
    evaluation = measure(training, test, predictor, everything, relevant_from=judging.relevant_from)
    if judging.negatives:
        evaluation.ranking.update(sampled_ranking(training, test, predictor, everything, judging.negatives, seed))
    return evaluation


def rmse_of_means(training: Ratings, test: Ratings) -> float:
    """The error of damped means alone."""
    return score(test, bias_only(training).predict, Fallback.of(training).knowing_everything()).rmse


def ndcg_of_popular(training: Ratings, test: Ratings, relevant_from: float) -> float | None:
    """NDCG@10 of a list of the most popular items."""
    known = Fallback.of(training).knowing_everything()
    figures = ranking.rank(training, test, global_mean(training), known, (10,), relevant_from)
    value: float | None = figures["ndcg@10"]
    return value


TRIVIAL: dict[str, Callable[[Ratings], Predictor]] = {
    "global-mean": global_mean,
    "bias-only": bias_only,
    "popularity": global_mean,
}
"""their names, wherever algorithms are named; everybody's mean rating ranks by popularity, so it goes by both names"""
ADDED = ("global-mean", "bias-only")
"""rows of every comparison, asked for or not"""
LIST_NAMES = {"global-mean": "global-mean (popularity)"}
"""what ranking tables call a predictor whose lists are known by another name"""
