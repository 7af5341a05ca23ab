"""The scorer counts what it says it counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrecplus.audit.guess import Guess, silent
from fedrecplus.audit.scoring import AuditTruth, area, expected_hits, score, true_positives_at

ITEMS = np.arange(10)
RATED = ITEMS < 5
TRUTH = AuditTruth({1: (ITEMS[RATED], np.array([1.0, 2.0, 3.0, 4.0, 4.0]))}, step=1.0, majority=4.0)


def said(rated: np.ndarray, ratings: np.ndarray | None = None) -> dict[int, list[Guess]]:
    return {1: [Guess(0, ITEMS, silent(ITEMS) if ratings is None else ratings, rated)]}


def test_a_perfect_guess_scores_one() -> None:
    ratings = np.array([1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 5.0, 5.0])
    found = score(said(RATED.astype(float), ratings), TRUTH, 0.5)
    assert (
        found["auc"]
        == found["precision"]
        == found["recall"]
        == found["f1"]
        == found["tpr_at_1pct_fpr"]
        == found["rating_exact"]
        == 1.0
    )
    assert found["rating_floor"] == 0.4
    assert found["chance"] == 0.5
    assert found["precision_chance"] == 0.5


def test_saying_the_same_of_all_rows_is_chance() -> None:
    found = score(said(np.zeros(10)), TRUTH, 0.5)
    assert found["auc"] == found["precision"] == found["recall"] == 0.5
    assert found["tpr_at_1pct_fpr"] == pytest.approx(0.01)
    assert found["rating_exact"] is None


def test_pseudo_rows_do_not_count_for_ratings() -> None:
    ratings = np.where(RATED, 4.0, np.nan)
    found = score(said(np.zeros(10), ratings), TRUTH, 0.5)
    assert found["rating_exact"] == 0.4
    assert found["rating_within_one"] == 0.6


def test_a_row_without_a_guess_is_a_wrong_guess() -> None:
    ratings = np.full(10, np.nan)
    ratings[3] = 4.0
    assert score(said(np.zeros(10), ratings), TRUTH, 0.5)["rating_exact"] == 0.2


def test_without_pseudo_rows_there_is_nothing_to_tell_apart() -> None:
    guess = Guess(0, ITEMS[RATED], silent(ITEMS[RATED]), np.zeros(5))
    found = score({1: [guess]}, TRUTH, 1.0)
    assert (
        found["auc"],
        found["precision"],
        found["recall"],
        found["f1"],
        found["tpr_at_1pct_fpr"],
        found["chance"],
    ) == (None,) * 6


def test_the_worst_tenth_is_the_most_exposed() -> None:
    truth = AuditTruth({client: (ITEMS[RATED], np.ones(5)) for client in range(10)}, 1.0, 1.0)
    rows = {client: [Guess(0, ITEMS, silent(ITEMS), np.zeros(10))] for client in range(9)}
    found = score({**rows, 9: [Guess(0, ITEMS, silent(ITEMS), RATED.astype(float))]}, truth, 0.5)
    assert found["auc"] == pytest.approx(0.55)
    assert found["auc_worst_tenth"] == 1.0
    low, high = found["auc_interval"]
    assert low < found["auc"] < high


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_area_is_the_share_of_pairs_in_the_right_order(rows: list[tuple[int, bool]]) -> None:
    scores, rated = np.array([row[0] for row in rows], dtype=float), np.array([row[1] for row in rows])
    if rated.any() and not rated.all():
        pairs = np.sign(scores[rated][:, None] - scores[~rated][None, :])
        assert area(scores, rated) == pytest.approx(float((pairs + 1).mean() / 2))
        assert 0.0 <= true_positives_at(scores, rated, 0.01) <= 1.0
        assert expected_hits(scores, rated, len(rows)) == pytest.approx(float(rated.sum()))
