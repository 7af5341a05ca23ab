from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrecplus.data import Ratings, folds, load, split, validation_cut
from fedrecplus.errors import UserError


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return load("synthetic:clients=40,items=30,ratings_per_client=5")


def cells(ratings: Ratings) -> set[tuple[int, int, int]]:
    return set(zip(ratings.client_of_rating.tolist(), ratings.items.tolist(), ratings.codes.tolist(), strict=True))


@given(count=st.integers(2, 20), seed=st.integers(0, 2**40))
def test_folds_are_equal_parts(ratings: Ratings, count: int, seed: int) -> None:
    sizes = np.bincount(folds(ratings, count, seed), minlength=count)
    assert sizes.sum() == len(ratings)
    assert sizes.max() - sizes.min() <= 1


def test_test_parts_are_disjoint_and_train_is_what_test_is_not(ratings: Ratings) -> None:
    tests = []
    for fold in range(5):
        train, test = split(ratings, fold)
        assert cells(train) | cells(test) == cells(ratings)
        assert not cells(train) & cells(test)
        tests.append(cells(test))
    assert set.union(*tests) == cells(ratings)
    assert sum(map(len, tests)) == len(ratings)


def test_a_seed_gives_the_same_folds_again_and_another_gives_others(ratings: Ratings) -> None:
    assert (folds(ratings, seed=4) == folds(ratings, seed=4)).all()
    assert (folds(ratings, seed=4) != folds(ratings, seed=5)).any()


def test_cold_clients_and_items_keep_their_numbers(ratings: Ratings) -> None:
    for part in (*split(ratings, 0), *validation_cut(ratings)):
        assert part.clients == ratings.clients
        assert part.item_count == ratings.item_count
        assert part.catalogue is ratings.catalogue
    trains = [split(ratings, fold)[0] for fold in range(5)]
    assert any((np.diff(train.indptr) == 0).any() for train in trains), "the example should have a cold client"


@given(share=st.floats(0.01, 0.99), seed=st.integers(0, 1000))
def test_a_validation_cut_takes_its_share(ratings: Ratings, share: float, seed: int) -> None:
    fit, validation = validation_cut(ratings, share, seed)
    assert cells(fit) | cells(validation) == cells(ratings)
    assert len(fit) + len(validation) == len(ratings)
    assert abs(len(validation) - share * len(ratings)) <= 1


def test_a_validation_cut_does_not_follow_the_folds(ratings: Ratings) -> None:
    _, validation = validation_cut(ratings, 0.2)
    assert cells(validation) != cells(split(ratings, 0)[1])


@pytest.mark.parametrize("fold", [-1, 5])
def test_a_fold_that_is_not_there_is_refused(ratings: Ratings, fold: int) -> None:
    with pytest.raises(UserError, match=rf"there is no fold {fold}(?s:.*)0 to 4"):
        split(ratings, fold)


def test_impossible_numbers_of_folds_and_shares_are_refused(ratings: Ratings) -> None:
    for count in (0, 1, 256, 10**9):
        with pytest.raises(UserError, match="folds"):
            folds(ratings, count)
    for share in (0.0, 1.0, -0.5, float("nan")):
        with pytest.raises(UserError, match="share"):
            validation_cut(ratings, share)
