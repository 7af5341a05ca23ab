"""For whom a model errs: errors by client, and of groups that a mean over all ratings hides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data import Ratings
from fedrecplus.training.evaluation import Errors

FEW_RATINGS_SHARE = 0.25
"""clients with few ratings: the quarter that rated least"""
TAIL_SHARE = 0.2
"""tail items: the least rated ones, which together have this share of the training ratings"""
WORST_SHARE = 0.1


def tail_items(popularity: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The least rated items, which together have a fifth of all ratings.

    >>> tail_items(np.array([70, 10, 20])).tolist()
    [False, True, False]
    """
    order = np.argsort(popularity, kind="stable")
    tail = np.zeros(len(popularity), dtype=bool)
    tail[order[np.cumsum(popularity[order]) <= TAIL_SHARE * popularity.sum()]] = True
    return tail


def few_ratings(rated: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which clients are of the quarter that rated least (more where the last are equal), by how many they rated.

    >>> few_ratings(np.array([9, 1, 5, 7])).tolist()
    [False, True, False, False]
    """
    return rated <= np.quantile(rated, FEW_RATINGS_SHARE) if len(rated) else np.zeros(0, dtype=bool)


def many_ratings(rated: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which clients are of the quarter that rated most (more where the last are equal)."""
    return rated >= np.quantile(rated, 1.0 - FEW_RATINGS_SHARE) if len(rated) else np.zeros(0, dtype=bool)


def by_group(errors: Errors, training: Ratings) -> dict[str, dict[str, Any]]:
    """MAE and RMSE of clients with few ratings, of tail items, and of the tenth of clients with the worst RMSE."""
    tested = np.flatnonzero(errors.count > 0)
    few = tested[few_ratings(np.diff(training.indptr)[tested])]
    worst_first = tested[np.argsort(-errors.rmse_by_client()[tested], kind="stable")]
    worst = worst_first[: max(1, round(WORST_SHARE * len(tested)))]
    return {
        "few_ratings": _of_clients(errors, few),
        "tail_items": _figures(*errors.tail),
        "worst_tenth": _of_clients(errors, worst),
    }


def _of_clients(errors: Errors, clients: NDArray[np.int64]) -> dict[str, Any]:
    sums = errors.count[clients].sum(), errors.absolute[clients].sum(), errors.squared[clients].sum()
    return {"clients": len(clients), **_figures(int(sums[0]), float(sums[1]), float(sums[2]))}


def _figures(count: int, absolute: float, squared: float) -> dict[str, Any]:
    if count == 0:
        return {"ratings": 0, "mae": None, "rmse": None}
    return {"ratings": count, "mae": absolute / count, "rmse": float(np.sqrt(squared / count))}
