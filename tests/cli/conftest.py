"""A file of ratings to run commands on, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_data import small_ratings


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ratings = small_ratings(clients=40)
    pairs = zip(ratings.client_of_rating, ratings.items, ratings.values, strict=True)
    lines = ["userId,movieId,rating", *(f"{client},{item},{rating:g}" for client, item, rating in pairs)]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "items.csv").write_text("movieId\n" + "".join(f"{item}\n" for item in range(ratings.item_count)))
    monkeypatch.chdir(tmp_path)
    return tmp_path
