"""One exact sum over few people is everybody's list; over many it is nobody's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.audit.attacks._rank_one import unmixed
from fedrecplus.audit.attacks.unmix import Settings
from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases, strongest_score
from fedrecplus.config import assign, preset
from fedrecplus.data import load, split

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


@pytest.mark.parametrize(("people", "least"), [(4, 0.99), (7, 0.99), (9, 0.98)])
def test_directions_and_coefficients_come_back_from_a_mixture(people: int, least: float) -> None:
    """Some persons have no row of their own: their directions are in what others leave."""
    random = np.random.default_rng(people)
    D = random.normal(size=(people, 10))
    A = random.uniform(0.5, 2.0, (people, 300)) * (random.random((people, 300)) < 0.3)
    A[0] *= A[1] != 0.0  # rates nothing that the second doesn't rate
    _, coefficients = unmixed(A.T @ D + random.normal(0.0, 1e-9, (300, 10)), 1e-9)
    for person in A:
        agreement = ((coefficients != 0.0) == (person != 0.0)).mean(axis=1)
        assert agreement.max() >= least


@pytest.mark.slow
@pytest.mark.parametrize("people", [10, 28, 100, 943])
def test_rows_that_six_are_expected_to_have_rated_name_nobody_of_ml_100k(people: int) -> None:
    training, test = split(load("ml-100k"), 0)
    config = assign(preset("fedrec+secure"), [f"cohort.fraction={people / 943}"])
    extent = AuditExtent(3, min(people, 30), ("unmix",), {"unmix": {"rounds": 1}})
    (row,) = audit_case(audit_cases({"mine": config})[-1], training, test, extent)
    assert (row["found"], row["named"]) == (0, 0.0)
