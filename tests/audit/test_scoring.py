"""The scorer counts what it says it counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedrecplus.audit.attacks import Guess, silent
from fedrecplus.audit.scoring import area, expected_hits, score, true_positives_at
from fedrecplus.audit.truth import AuditTruth, somebody_else

ITEMS = np.arange(10)
RATED = ITEMS < 5
USUAL = np.where(ITEMS < 4, 3.0, 4.0)
"""right of two of the five ratings"""


def truth_of(clients: dict, majority: float = 4.0, **more) -> AuditTruth:
    return AuditTruth(clients, 1.0, majority, np.array([9, 7, 5, 3, 1] * 2), USUAL, **more)


TRUTH = truth_of({1: (ITEMS[RATED], np.array([1.0, 2.0, 3.0, 4.0, 4.0]))})


def said(rated: np.ndarray, ratings: np.ndarray | None = None) -> dict[int, list[Guess]]:
    return {1: [Guess(0, ITEMS, silent(ITEMS) if ratings is None else ratings, rated)]}


def test_a_perfect_guess_scores_one() -> None:
    ratings = np.array([1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 5.0, 5.0])
    found = score(said(RATED.astype(float), ratings), TRUTH, 0.5)
    for figure in ("auc", "precision", "recall", "f1", "tpr_at_1pct_fpr", "rating_exact"):
        assert found[figure] == 1.0
    assert found["rating_floor"] == 0.4
    assert found["chance"] == 0.5
    assert found["precision_chance"] == 0.5


def test_saying_the_same_of_all_rows_is_chance() -> None:
    found = score(said(np.zeros(10)), TRUTH, 0.5)
    assert found["auc"] == found["precision"] == found["recall"] == 0.5
    assert found["tpr_at_1pct_fpr"] == pytest.approx(0.01)
    assert found["rating_exact"] == 0.4, "without an opinion, the public average is the guess"


def test_pseudo_rows_do_not_count_for_ratings() -> None:
    ratings = np.where(RATED, 4.0, np.nan)
    found = score(said(np.zeros(10), ratings), TRUTH, 0.5)
    assert found["rating_exact"] == 0.4
    assert found["rating_within_one"] == 0.6


def test_a_rating_without_a_guess_is_guessed_as_its_public_average() -> None:
    ratings = np.full(10, np.nan)
    ratings[3] = 4.0
    assert score(said(np.zeros(10), ratings), TRUTH, 0.5)["rating_exact"] == 0.6
    ratings[4] = 5.0
    assert score(said(np.zeros(10), ratings), TRUTH, 0.5)["rating_exact"] == 0.4


def test_without_pseudo_rows_rated_items_stand_against_unrated_ones() -> None:
    """All uploaded rows are rated: whoever sees the list knows them all."""
    guess = Guess(0, ITEMS[RATED], silent(ITEMS[RATED]), np.zeros(5))
    found = score({1: [guess]}, TRUTH, 1.0)
    assert found["auc"] == found["precision"] == found["recall"] == 1.0
    assert found["precision_chance"] == 0.5


def test_an_attack_that_says_nothing_is_at_chance_and_nothing_is_null() -> None:
    found = score({1: []}, TRUTH, 0.5)
    assert found["auc"] == found["auc_control"] == found["auc_worst_tenth"] == 0.5
    assert found["rating_exact"] == found["rating_exact_control"] == 0.4


def test_the_control_is_the_same_question_answered_by_what_is_said_of_somebody_else() -> None:
    ratings = (np.array([1.0, 2.0, 3.0, 4.0, 4.0]), np.ones(3))
    truth = truth_of({1: (ITEMS[:5], ratings[0]), 2: (ITEMS[4:7], ratings[1])}, against="unrated")
    of_other = Guess(0, ITEMS, np.ones(10), np.isin(ITEMS, ITEMS[4:7]).astype(float))
    found = score(said(RATED.astype(float), np.array([1.0, 2.0, 3.0, 4.0, 4.0] * 2)), truth, 0.5, {1: [of_other]})
    assert (found["auc"], found["rating_exact"], found["rating_exact_control"]) == (1.0, 1.0, 0.2)
    # of the other's three items one is rated here and two are not: .5 + (1·3 − 2·4)/(2·25)
    assert found["auc_control"] == pytest.approx(0.4)


def test_unrated_items_are_as_popular_as_the_rated_ones_and_as_many() -> None:
    random = np.random.default_rng(0)
    popularity = random.integers(1, 300, 400)
    rated = np.sort(random.choice(400, 60, replace=False, p=popularity / popularity.sum()))
    truth = AuditTruth({1: (rated, np.ones(60))}, 1.0, 1.0, popularity, np.ones(400))
    asked = truth.question(1)
    against = np.setdiff1d(asked, rated)
    assert len(asked) == 120
    assert len(against) == 60
    by_others = popularity - np.isin(np.arange(400), rated)
    off = np.abs(np.sort(by_others[rated]) - np.sort(by_others[against]))
    assert np.median(off / by_others[rated].mean()) < 0.03
    assert area(by_others[asked].astype(float), np.isin(asked, rated)) == pytest.approx(0.5, abs=0.03)


def test_who_rated_nearly_all_is_asked_about_as_many_as_are_left() -> None:
    truth = AuditTruth({1: (ITEMS[:8], np.ones(8))}, 1.0, 1.0, np.full(10, 5), np.ones(10))
    assert len(truth.question(1)) == 4


def test_everybody_has_somebody_else() -> None:
    clients = np.array([3, 5, 8, 9])
    others = somebody_else(clients, 0)
    assert sorted(others) == sorted(others.values()) == clients.tolist()
    assert all(client != other for client, other in others.items())
    assert somebody_else(clients[:1], 0) == {}


def test_the_worst_tenth_is_the_most_exposed() -> None:
    truth = truth_of({client: (ITEMS[RATED], np.ones(5)) for client in range(10)})
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


def test_every_share_and_area_has_an_interval_around_it() -> None:
    random = np.random.default_rng(3)
    truth = truth_of({client: (ITEMS[RATED], np.ones(5)) for client in range(20)})
    rows = {client: [Guess(0, ITEMS, silent(ITEMS), RATED + random.normal(0.0, 1.0, 10))] for client in range(20)}
    controls = {client: [Guess(0, ITEMS, silent(ITEMS), random.normal(0.0, 1.0, 10))] for client in range(20)}
    found = score(rows, truth, 0.5, controls)
    found["gain"] = found["auc"] - found["auc_control"]
    for name in ("auc", "auc_control", "rating_exact", "tpr_at_1pct_fpr", "tpr_at_01pct_fpr", "named", "gain"):
        low, high = found[f"{name}_interval"]
        assert low <= found[name] <= high
    assert found["found_interval"][0] < found["found"] / 20 < found["found_interval"][1]
    assert found["roc"] == sorted(found["roc"])
    assert found["roc"][-1] == 1.0
