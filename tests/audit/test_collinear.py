"""The benchmark that counts whose rows of a sum are collinear finds people where there are some to be found."""

from __future__ import annotations

import numpy as np

from benchmarks.collinear import found_in_a_sum
from tests.audit.conftest import small_town


def test_people_are_found_in_a_sum_of_few_and_not_among_rows_that_many_rate() -> None:
    town = small_town()
    (found, rows), (hidden, common) = found_in_a_sum(town, np.arange(6), 8, (0.0, 2.0))
    assert found >= 3
    assert rows > common
    assert hidden == 0
