"""Predictions and lists for many clients at once. One process stands for all devices here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.training.evaluation import Fallback, Predictor, client_means
from fedrecplus.training.lists import ListOptions, check_length, columns_of
from fedrecplus.training.ranking import top
from fedrecplus.training.recommender import Recommender, numbers_of, places_among

Array = NDArray[np.float64]


def predict_pairs(recommender: Recommender, users: Sequence[Any], items: Sequence[Any]) -> Array:
    """Predicted ratings of pairs, on the data's scale.

    Of a user without ratings items are predicted by their means, an item without ratings by the user's, as in
    evaluations.
    """
    model, parts = recommender.model, recommender.clients
    people, places = places_among(parts.client_ids, np.array(users)), places_among(model.item_ids, np.array(items))
    values, public = model.scale.standardise(model.scale.values(parts.codes)), model.public
    # one more client and item, −1, of whom nothing is known
    fallback = Fallback(
        np.append(client_means(parts.indptr, values, public.mean), public.mean),
        np.append(public.averages(), public.mean),
        np.append(np.diff(parts.indptr) > 0, False),
        np.append(public.popularity > 0, False),
        np.append(model.known, False),
        public.mean,
    )
    standard = np.zeros(len(people))
    both = (people >= 0) & (places >= 0)
    standard[both] = Predictor(parts.W, model.X, scored_by=model.scored_by).predict(people[both], places[both])
    return model.scale.restore(fallback.mend(standard, people, places))


def recommend_many(recommender: Recommender, users: Sequence[Any], options: ListOptions) -> dict[str, list[Any]]:
    """Columns user, rank, item, score, rating and title: the best items of each user, best first.

    Where reasons are wished for, the column ``why`` has the ids of the user's own items that speak most for each.
    """
    columns: dict[str, list[Any]] = {"user": [], **columns_of((), options.why)}
    for user in users:
        best = recommender.client(user).top_list(options).items
        columns["user"] += [user] * len(best)
        for name, values in columns_of(best, options.why).items():
            columns[name] += values
    return columns


def similar_items(recommender: Recommender, item: Any, n: int = 10) -> dict[str, list[Any]]:
    """Columns item, similarity and title: the n rated items whose rows of the shared table are most like this one's.

    After: Sarwar et al. 2001, cosine similarity, of factors instead of ratings.
    """
    check_length(n)
    model = recommender.model
    number = int(numbers_of(model.item_ids, [item], "item")[0])
    V = model.V.astype(np.float64)
    length = np.maximum(np.linalg.norm(V, axis=1), 1e-12)
    similarity = (V @ V[number]) / (length * length[number])
    similarity[model.public.popularity == 0] = -np.inf
    similarity[number] = -np.inf
    best = top(similarity, model.public.popularity, n)
    titles = model.titles or ("",) * len(V)
    return {
        "item": model.item_ids[best].tolist(),
        "similarity": similarity[best].tolist(),
        "title": [titles[one] for one in best],
    }
