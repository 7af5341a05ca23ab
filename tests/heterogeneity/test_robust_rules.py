"""Median, trimmed mean, Krum, geometric median and ActvAGG: by hand, and against outliers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from fedrecplus.config import Config, assign
from fedrecplus.engines import engine_of, message_of, prepare
from fedrecplus.parts.aggregation.geometric_median import GeometricMedian
from fedrecplus.protocol import Upload
from fedrecplus.rounds import sums_of
from tests.small_data import small_ratings


def aggregate(rule: str, rows: np.ndarray, share: str) -> np.ndarray:
    """What becomes of rows of the first item, and of one that nobody sent."""
    options = [f"aggregation.{share}"] if share else []
    config = assign(Config(), [f"aggregation.rule={rule}", f"model.factors={rows.shape[1]}", *options])
    problem = prepare(small_ratings(), config)
    uploads = [Upload(client, np.array([0]), row[None]) for client, row in enumerate(rows)]
    return config.aggregation.aggregate(uploads, message_of(problem, engine_of(config).start(problem)))[:2]


@pytest.mark.parametrize(
    ("rule", "share", "expected"),
    [
        ("coordinate-median", "", 3.0),
        ("trimmed-mean", "hostile=0.2", 3.0),
        ("trimmed-mean", "hostile=0", 22.0),
        ("krum", "hostile=0.2", 2.5),
    ],
)
def test_by_hand(rule: str, share: str, expected: float) -> None:
    assert aggregate(rule, np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]), share).tolist() == [[expected], [0.0]]


@pytest.mark.parametrize(
    ("rule", "share"),
    [("coordinate-median", ""), ("trimmed-mean", "hostile=0.4"), ("krum", "hostile=0.4"), ("geometric-median", "")],
)
def test_a_third_of_liars_cannot_move_a_row_beyond_the_honest(rule: str, share: str) -> None:
    honest = np.random.default_rng(3).normal(size=(20, 4))
    moved = aggregate(rule, np.vstack([honest, np.full((9, 4), 1e6)]), share)[0]
    assert (moved >= honest.min(axis=0)).all()
    assert (moved <= honest.max(axis=0)).all()


def test_the_geometric_median_minimises_the_sum_of_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GeometricMedian.settings_type, "iterations", 500)
    monkeypatch.setattr(GeometricMedian.settings_type, "tolerance", 1e-12)
    rows = np.random.default_rng(4).normal(size=(9, 3)) ** 3
    found = aggregate("geometric-median", rows, "")
    solved = scipy.optimize.minimize(lambda z: np.linalg.norm(rows - z, axis=1).sum(), rows.mean(axis=0))
    np.testing.assert_allclose(found[0], solved.x, atol=1e-4)
    assert (found[1] == 0).all()


def test_actvagg_weighs_rows_by_how_far_they_moved() -> None:
    """q = 3 and 1: (3·(1, −2) + 1·(0, 1)) / 4. Where nobody moved a row, it stays."""
    found = aggregate("actvagg", np.array([[1.0, -2.0], [0.0, 1.0]]), "")
    np.testing.assert_allclose(found, [[0.75, -1.25], [0.0, 0.0]])
    assert (aggregate("actvagg", np.zeros((3, 2)), "") == 0).all()


def test_size_weighs_a_client_by_its_rows() -> None:
    config = assign(Config(), ["aggregation.rule=size", "model.factors=1"])
    uploads = [Upload(0, np.array([0, 1, 2]), np.full((3, 1), 4.0)), Upload(1, np.array([0]), np.array([[8.0]]))]
    problem = prepare(small_ratings(), config)
    sums = sums_of(uploads, message_of(problem, engine_of(config).start(problem)), config)
    assert sums.total[:3, 0].tolist() == [20.0, 12.0, 12.0]
    assert (sums.weights[:3].tolist(), sums.overall) == ([4.0, 3.0, 3.0], 4.0)
