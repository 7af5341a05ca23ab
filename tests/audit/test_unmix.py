"""One exact sum over few people is everybody's list; over many it is nobody's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.collinear import found_in_a_sum
from fedrecplus.audit.attacks.unmix import Settings
from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases, strongest_score
from fedrecplus.config import assign, preset
from fedrecplus.data import load, split
from tests.audit.conftest import small_town

TWELVE = ("model.interaction_factors=16", "cohort.fraction=0.2", "channel.fewest_contributors=1", "channel.bits=32")
"""of sixty, fewer than there are columns, and no row is left out"""


def test_a_sum_over_few_names_every_item_and_rating_of_everybody_in_it(recorded) -> None:
    recording, _ = recorded("fedrec+secure", *TWELVE)
    found = strongest_score(recording, "unmix", Settings(rounds=2))
    assert found["found"] == found["users"]
    assert found["named"] >= 0.95
    assert found["rating_exact"] >= 0.9
    assert found["named_control"] < 0.1
    assert found["blind"] == []


def test_many_people_leave_nothing_to_take_apart(recorded) -> None:
    """Sixty over six columns."""
    found = strongest_score(recorded("fedrec+secure", "model.interaction_factors=6")[0], "unmix", Settings(rounds=2))
    assert (found["found"], found["named"]) == (0, 0.0)


def test_noise_leaves_nothing_to_take_apart(recorded) -> None:
    recording, _ = recorded("fedrec+secure", *TWELVE)
    random, transcript = np.random.default_rng(0), recording.transcript
    noised = {
        t: replace(sums, total=sums.total + random.normal(0.0, 0.05, sums.total.shape), noise=0.05)
        for t, sums in transcript.sums.items()
    }
    found = strongest_score(replace(recording, transcript=transcript.with_sums(noised)), "unmix", Settings(rounds=2))
    assert found["found"] <= 3
    assert found["named"] < 0.03


def test_collinear_rows_name_people_in_a_sum_of_few_and_nobody_among_rows_that_many_rate() -> None:
    """By the benchmark that counts them."""
    (found, rows), (hidden, common) = found_in_a_sum(small_town(), np.arange(6), 8, (0.0, 2.0))
    assert found >= 3
    assert rows > common
    assert hidden == 0


@pytest.mark.slow
@pytest.mark.parametrize("people", [10, 28, 100, 943])
def test_rows_that_six_are_expected_to_have_rated_name_nobody_of_ml_100k(people: int) -> None:
    training, test = split(load("ml-100k"), 0)
    config = assign(preset("fedrec+secure"), [f"cohort.fraction={people / 943}"])
    extent = AuditExtent(3, min(people, 30), ("unmix",), {"unmix": {"rounds": 1}})
    (row,) = audit_case(audit_cases({"mine": config})[-1], training, test, extent)
    assert (row["found"], row["named"]) == (0, 0.0)
