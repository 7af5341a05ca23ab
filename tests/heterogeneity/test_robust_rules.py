"""Median, trimmed mean and Krum: by hand, and against outliers."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.engines import message_of, prepare
from fedrecplus.engines.state import start
from fedrecplus.protocol import Upload
from tests.small_data import small_ratings


def aggregate(rule: str, rows: np.ndarray, share: str) -> np.ndarray:
    """What becomes of rows of the first item, and of one that nobody sent."""
    options = [f"aggregation.{share}"] if share else []
    config = assign(Config(), [f"aggregation.rule={rule}", f"model.factors={rows.shape[1]}", *options])
    problem = prepare(small_ratings(), config)
    uploads = [Upload(client, np.array([0]), row[None]) for client, row in enumerate(rows)]
    return config.aggregation.aggregate(uploads, message_of(problem, start(problem)))[:2]


@pytest.mark.parametrize(
    ("rule", "share", "expected"),
    [
        ("coordinate-median", "", 3.0),
        ("trimmed-mean", "trim=0.2", 3.0),
        ("trimmed-mean", "trim=0", 22.0),
        ("krum", "hostile=0.2", 2.5),
    ],
)
def test_by_hand(rule: str, share: str, expected: float) -> None:
    assert aggregate(rule, np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]), share).tolist() == [[expected], [0.0]]


@pytest.mark.parametrize(
    ("rule", "share"), [("coordinate-median", ""), ("trimmed-mean", "trim=0.4"), ("krum", "hostile=0.4")]
)
def test_a_third_of_liars_cannot_move_a_row_beyond_the_honest(rule: str, share: str) -> None:
    honest = np.random.default_rng(3).normal(size=(20, 4))
    moved = aggregate(rule, np.vstack([honest, np.full((9, 4), 1e6)]), share)[0]
    assert (moved >= honest.min(axis=0)).all()
    assert (moved <= honest.max(axis=0)).all()
