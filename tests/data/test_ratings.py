from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.data import Catalogue, Ratings, describe, load


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


def test_damped_means_lie_between_the_items_own_and_the_overall_one(ratings: Ratings) -> None:
    assert ratings.mean() == 3.5
    assert ratings.item_means(0.0).tolist() == [3.0, 3.0, 5.0]
    assert ratings.item_means(2.0) == pytest.approx([(6 + 7) / 4, (3 + 7) / 3, (5 + 7) / 3])
    unrated = ratings.where(np.zeros(4, dtype=np.bool_))
    assert unrated.mean() == 3.0
    assert unrated.item_means().tolist() == [3.0, 3.0, 3.0]


def test_content_features_weigh_rare_genres_more_and_know_nothing_of_unknown_years() -> None:
    genres = np.array([[True, True], [True, False], [True, False]])
    catalogue = Catalogue(("a", "b", "c"), np.array([1950, 2000, 0], dtype=np.int16), genres, ("drama", "western"))
    features = catalogue.features()
    assert features[:, 0].tolist() == [0.0, 0.0, 0.0], "what all items have tells nothing"
    assert features[:, 1].tolist() == [np.log(2.0), 0.0, 0.0]
    eras = features[:, 2:]
    assert eras.shape == (3, 6)
    assert (eras.argmax(axis=1)[:2] == [0, 5]).all()
    assert not eras[2].any()
    same_year = replace(catalogue, years=np.full(3, 1990, dtype=np.int16))
    assert same_year.features().shape == (3, 2)


def test_a_set_is_described(ratings: Ratings) -> None:
    facts = describe(ratings)
    assert (facts["clients"], facts["items"], facts["ratings"]) == (3, 3, 4)
    assert facts["density"] == pytest.approx(4 / 9)
    assert facts["histogram"] == {"1": 1, "3": 1, "5": 2}
    assert facts["mean"] == 3.5
    assert facts["activity"] == {"least": 1, "quarter": 1, "median": 1, "three quarters": 1.5, "most": 2}
    assert facts["top_decile_share"] == 0.5
    assert facts["metadata"] == {"titles": 0, "years": 0, "genres": 0}
    assert facts["times"] is None
    timed = replace(ratings, timestamps=np.array([881250949, 891717742, 889751712, 878542960]))
    assert describe(timed)["times"] == {"first": "1997-11-03", "last": "1998-04-04"}
