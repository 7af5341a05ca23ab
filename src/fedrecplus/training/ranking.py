"""Ranking metrics by full ranking: every item that a client hasn't rated in training competes, none is sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.randomness import uniform
from fedrecplus.training.evaluation import Fallback, Predictor

LIKED = 4.0
"""a test rating from here up, in standard units, makes an item relevant"""
DEPTH = 10
_MOST_CLIENTS = 20_000
_CELLS = 1 << 22


def rank(training: Ratings, test: Ratings, predictor: Predictor, fallback: Fallback) -> dict[str, Any]:
    """NDCG@10, HR@10 and recall@10, as means over clients that like at least one test item.

    Of more than 20,000 such clients, so many are drawn by a fixed key: it is items that must not be sampled.
    After: Krichene and Rendle 2020, who show that sampled negatives mislead.
    """
    liked = test.where(test.standard_values >= LIKED - 1e-9)
    clients = np.flatnonzero(np.diff(liked.indptr) > 0)
    if len(clients) > _MOST_CLIENTS:
        drawn = np.argsort(uniform(0, clients), kind="stable")[:_MOST_CLIENTS]
        clients = np.sort(clients[drawn])
    per_block = max(1, _CELLS // training.item_count)
    sums, popularity = np.zeros(3), training.item_counts()
    for first in range(0, len(clients), per_block):
        block = clients[first : first + per_block]
        for client, scores in zip(block, _scores(block, predictor, fallback, popularity), strict=True):
            scores[training.of(int(client))[0]] = -np.inf
            sums += _metrics(top(scores, popularity, DEPTH), liked.of(int(client))[0])
    means = (sums / max(len(clients), 1)).tolist()
    return {"clients": len(clients), "ndcg@10": means[0], "hr@10": means[1], "recall@10": means[2]}


def top(scores: NDArray[np.float64], popularity: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The n best items, best first; of equals the more popular, then the one that comes first.

    >>> top(np.array([1.0, 3.0, 3.0, -np.inf]), np.array([9, 1, 5, 9]), 3).tolist()
    [2, 1, 0]
    """
    open_items = np.flatnonzero(scores > -np.inf)
    if len(open_items) > n:
        worst_kept = np.partition(scores[open_items], len(open_items) - n)[len(open_items) - n]
        open_items = open_items[scores[open_items] >= worst_kept]
    order = np.lexsort((open_items, -popularity[open_items], -scores[open_items]))
    best: NDArray[np.int64] = open_items[order[:n]]
    return best


def _scores(
    clients: NDArray[Any], predictor: Predictor, fallback: Fallback, popularity: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Predictions for all items; those of a client without ratings are all the same, so popularity ranks for it."""
    scores = predictor.scores(clients)
    unknown = fallback.client_mean[clients][:, None] if predictor.Z is None else scores.min(axis=1, keepdims=True)
    scores[:, ~fallback.known_item] = unknown
    scores[~fallback.known_client[clients]] = popularity
    return scores


def _metrics(ranked: NDArray[np.int64], liked: NDArray[np.int64]) -> NDArray[np.float64]:
    hits = np.isin(ranked, liked)
    discount = 1.0 / np.log2(np.arange(2, DEPTH + 2))
    gain = float(discount[: len(hits)][hits].sum())
    ideal = float(discount[: min(len(liked), DEPTH)].sum())
    return np.array([gain / ideal, float(hits.any()), hits.sum() / len(liked)])
