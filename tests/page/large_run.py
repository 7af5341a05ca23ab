"""A run folder with very many items, whose table nobody trained: for sizes and speeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrecplus.config import preset
from fedrecplus.data import Catalogue, Scale
from fedrecplus.files import write_json
from fedrecplus.protocol import PublicItems
from fedrecplus.training import SharedModel

GENRES = ("Action", "Animation", "Comedy", "Crime", "Documentary", "Drama", "Horror", "Romance", "Sci-Fi", "Western")
_SYLLABLES = ("ba", "cor", "del", "fi", "gan", "hol", "is", "jun", "kel", "lo", "mar", "nes", "or", "pel", "qui", "ra")


def large_run(folder: Path, items: int = 60_000) -> Path:
    """Titles of about the length that films have, a skewed popularity, factors like noise."""
    rng = np.random.default_rng(0)
    words = ["".join(some).title() for some in rng.choice(_SYLLABLES, (4000, 3))]
    lengths, drawn = rng.integers(1, 4, items), rng.integers(0, len(words), (items, 3))
    titles = tuple(" ".join(words[w] for w in row[:n]) for row, n in zip(drawn.tolist(), lengths, strict=True))
    catalogue = Catalogue(
        titles, rng.integers(1930, 2020, items).astype(np.int16), rng.random((items, 10)) < 0.2, GENRES
    )
    config = preset("fedrec+secure")
    public = PublicItems(
        catalogue.features(),
        np.sort((1e5 / np.arange(1, items + 1) ** 0.9).astype(np.int64))[::-1].copy(),
        np.clip(rng.normal(3.5, 0.4, items), 1, 5),
        catalogue.years.astype(np.int64),
        mean=3.5,
    )
    columns = config.model.columns
    V = (0.3 * rng.normal(size=(items, columns))).astype(np.float32)
    SharedModel(config, Scale(1, 5, 1), V, public, np.arange(items), titles, GENRES).write(folder)
    write_json(folder / "data.json", {"dataset": "large", "made": {"version": "0", "when": "2020-01-01"}})
    write_json(folder / "result.json", {"rmse": None, "dataset": "large", "item_list": "public"})
    return folder
