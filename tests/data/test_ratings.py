from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedrecplus.data import Ratings, describe, load


@pytest.fixture
def ratings(write: Callable[..., str]) -> Ratings:
    return load(write("a,x,5\na,y,3\nb,x,1\nc,z,5\n"))


def test_a_clients_own_ratings_are_in_standard_units(write: Callable[..., str]) -> None:
    ratings = load(write("1,1,0\n1,2,50\n2,1,100\n"))
    items, values = ratings.of(0)
    assert items.tolist() == [0, 1]
    assert values.tolist() == [1.0, 3.0]


def test_a_mask_keeps_numbers(ratings: Ratings) -> None:
    kept = ratings.where(np.array([False, True, False, True]))
    assert kept.indptr.tolist() == [0, 1, 1, 2]
    assert kept.items.tolist() == [1, 2]
    assert kept.client_of_rating.tolist() == [0, 2]


def test_a_set_is_described(ratings: Ratings) -> None:
    facts = describe(ratings)
    assert (facts["clients"], facts["items"], facts["ratings"]) == (3, 3, 4)
    assert facts["density"] == pytest.approx(4 / 9)
    assert facts["histogram"] == {"1": 1, "3": 1, "5": 2}
    assert facts["mean"] == 3.5
    assert facts["activity"] == {"least": 1, "quarter": 1, "median": 1, "three quarters": 1.5, "most": 2}
    assert facts["top_decile_share"] == 0.5
    assert facts["metadata"] == {"titles": 0, "years": 0, "genres": 0}
