"""Each test item among some that the person hasn't rated: the measure of many papers, beside full ranking.

With 99 drawn items whoever knows what is popular does well: it is here to compare with what was published.

After: He et al. 2017 (NCF); Krichene and Rendle 2020, on why it misleads
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data import Ratings
from fedrecplus.randomness import keys, subkey
from fedrecplus.training.evaluation import Fallback, Predictor
from fedrecplus.training.ranking import blocks, cells, clients_with_ratings, scores_of

DEPTH = 10
Candidates = NDArray[np.int64]


def drawn_negatives(training: Ratings, test: Ratings, count: int, seed: int, clients: NDArray[np.int64]) -> Candidates:
    """So many items that each of the clients rated neither in training nor in the test, a row each; −1 for none."""
    drawn = np.stack([keys(subkey(seed, "negatives", int(one)), np.arange(training.item_count)) for one in clients])
    for ratings in (training, test):
        drawn[cells(ratings, clients)] = np.iinfo(np.uint64).max
    best = np.argsort(drawn, axis=1, kind="stable")[:, :count]
    return np.where(np.take_along_axis(drawn, best, axis=1) == np.iinfo(np.uint64).max, -1, best)


def sampled_ranking(
    training: Ratings,
    test: Ratings,
    predictor: Predictor,
    fallback: Fallback,
    count: int,
    seed: int,
    given: Candidates | None = None,
) -> dict[str, float | None]:
    """``sampled_hr@10`` and ``sampled_ndcg@10``, means over test items, whatever their rating.

    ``given`` are fixed negatives, a row per client. Of equal scores the more popular item is ahead.
    """
    if len(test) == 0:
        return {f"sampled_hr@{DEPTH}": None, f"sampled_ndcg@{DEPTH}": None}
    popularity, ranks = training.item_counts(), []
    for block in blocks(clients_with_ratings(test), training.item_count):
        negatives = drawn_negatives(training, test, count, seed, block) if given is None else given[block]
        scores = scores_of(block, predictor, fallback, popularity)
        rows, items = cells(test, block)
        others = np.maximum(negatives[rows], 0)
        own, theirs = scores[rows, items][:, None], scores[rows[:, None], others]
        ahead = (theirs > own) | ((theirs == own) & (popularity[others] >= popularity[items][:, None]))
        ranks.append((ahead & (negatives[rows] >= 0)).sum(axis=1))
    places = np.concatenate(ranks)
    hit = places < DEPTH
    gains = np.where(hit, 1.0 / np.log2(places + 2.0), 0.0)
    return {f"sampled_hr@{DEPTH}": float(hit.mean()), f"sampled_ndcg@{DEPTH}": float(gains.mean())}
