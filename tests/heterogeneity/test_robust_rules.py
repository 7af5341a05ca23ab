"""Median, trimmed mean and Krum: by hand, against outliers, and the kernels against the files."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.fast.robust import by_item
from fedrecplus.parts import part
from fedrecplus.protocol import Upload

ROBUST = ["coordinate-median", "trimmed-mean", "krum"]


def settings_of(rule: str, trim: float = 0.1) -> Config:
    return assign(Config(), [f"aggregation.rule={rule}", f"aggregation.trim={trim}"])


def column(values: list[float]) -> list[Upload]:
    return [Upload(client, np.array([0]), np.array([[value]])) for client, value in enumerate(values)]


def aggregate(rule: str, uploads: list[Upload], shape: tuple[int, int], trim: float = 0.1) -> np.ndarray:
    return part("aggregation", rule).aggregate(uploads, shape, settings_of(rule, trim))


@pytest.mark.parametrize(
    ("rule", "trim", "expected"),
    [("coordinate-median", 0.0, 3.0), ("trimmed-mean", 0.2, 3.0), ("trimmed-mean", 0.0, 22.0), ("krum", 0.2, 2.5)],
)
def test_by_hand(rule: str, trim: float, expected: float) -> None:
    table = aggregate(rule, column([1.0, 2.0, 3.0, 4.0, 100.0]), (2, 1), trim)
    assert table.tolist() == [[expected], [0.0]]


@pytest.mark.parametrize("rule", ROBUST)
def test_a_third_of_liars_cannot_move_a_row_beyond_the_honest(rule: str) -> None:
    rng = np.random.default_rng(3)
    honest = rng.normal(size=(20, 4))
    rows = np.vstack([honest, np.full((9, 4), 1e6)])
    uploads = [Upload(client, np.array([1]), row[None]) for client, row in enumerate(rows)]
    moved = aggregate(rule, uploads, (3, 4), trim=0.4)[1]
    assert (moved >= honest.min(axis=0)).all()
    assert (moved <= honest.max(axis=0)).all()


@pytest.mark.parametrize("rule", ROBUST)
@pytest.mark.parametrize("trim", [0.0, 0.1, 0.4, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_kernels_give_what_the_files_give(rule: str, trim: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    uploads = []
    for client in range(60):
        items = np.sort(rng.choice(25, rng.integers(1, 20), replace=False))
        # a few clients that agree exactly, so that there are ties
        rows = np.ones((len(items), 3)) if client % 9 == 0 else rng.normal(size=(len(items), 3))
        uploads.append(Upload(client, items, rows))
    expected = aggregate(rule, uploads, (26, 3), trim)
    np.testing.assert_allclose(by_item(uploads, (26, 3), settings_of(rule, trim)), expected, rtol=0, atol=1e-12)
