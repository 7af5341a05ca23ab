"""A small data set for tests: few clients, skewed popularity, a catalogue, and a low-rank truth."""

from __future__ import annotations

import numpy as np

from fedrecplus.data.ratings import Catalogue, Ratings
from fedrecplus.data.scale import Scale


def small_ratings(clients: int = 30, items: int = 40, seed: int = 0, scale: Scale | None = None) -> Ratings:
    scale = scale or Scale(1.0, 5.0, 1.0)
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, items + 1) ** 0.7
    counts = rng.integers(2, max(3, items // 3), clients)
    rows = [np.sort(rng.choice(items, n, replace=False, p=popularity / popularity.sum())) for n in counts]
    U, V = rng.normal(size=(clients, 3)), rng.normal(size=(items, 3))
    taste = np.concatenate([U[u] @ V[row].T for u, row in enumerate(rows)])
    levels = np.clip(np.rint((scale.levels - 1) * (0.6 + 0.15 * taste)), 0, scale.levels - 1)
    catalogue = Catalogue(
        titles=tuple(f"Item {i}" for i in range(items)),
        years=rng.integers(1950, 2000, items).astype(np.int16),
        genres=V > 0.5,
        genre_names=("a", "b", "c"),
    )
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Ratings(
        "small", scale, indptr, np.concatenate(rows).astype(np.uint16), levels.astype(np.uint8),
        np.arange(clients), np.arange(items), catalogue,
    )  # fmt: skip
