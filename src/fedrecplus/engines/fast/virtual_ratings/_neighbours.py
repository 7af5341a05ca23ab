"""Ratings of similar items, for many clients: see ``parts/virtual_ratings/nearest.py`` and ``weighted.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays.compiling import kernel
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.likeness import alike, likeness_table
from fedrecplus.engines.fast.virtual_ratings.user_average import mean_rating


def from_similar(some: Drawing, weighted: bool) -> Fill:
    """The rating of the most similar rated item, or the mean of all weighted by similarity."""
    features, rated = some.message.features, some.rated
    table = likeness_table(features)

    def fill(clients: Clients, items: Any, out: Any) -> None:
        from_neighbours(weighted, clients, rated, items, table, features, out)

    return fill


@kernel
def from_neighbours(
    weighted: bool, clients: Any, rated: Any, pseudo_items: Any, table: Any, features: Any, out: Any
) -> None:
    """The rating of the most similar rated item, or the mean of all weighted by similarity."""
    indptr, items, codes, levels = rated.indptr, rated.items, rated.codes, rated.levels
    pseudo_indptr = rated.pseudo_indptr
    for client in clients:
        first, last = indptr[client], indptr[client + 1]
        mean = mean_rating(codes, first, last, levels)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            best, nearest = -2.0, 0.0
            total, weights = 0.0, 0.0
            for at in range(first, last):
                like = alike(np.int64(pseudo_items[place]), np.int64(items[at]), table, features)
                rating = levels[codes[at]]
                if like > best:
                    best, nearest = like, rating
                if like > 0.0:
                    total += like * rating
                    weights += like
            if weighted:
                out[place] = total / weights if weights > 0.0 else mean
            else:
                out[place] = nearest
