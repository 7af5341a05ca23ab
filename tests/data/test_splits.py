from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from fedrecplus.data import Ratings, Split, folds, from_frame, load, split, validation_cut
from fedrecplus.errors import UserError


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return load("synthetic:clients=40,items=30,ratings_per_client=5")


def cells(ratings: Ratings) -> set[tuple[int, int, int]]:
    return set(zip(ratings.client_of_rating.tolist(), ratings.items.tolist(), ratings.codes.tolist(), strict=True))


def numbers(ratings: Ratings, count: int = 5, seed: int = 0, how: str = "random") -> np.ndarray:
    return Split.parse(how).numbers(ratings, count, seed)


def test_each_fold_is_a_pair_of_training_and_test(ratings: Ratings) -> None:
    pairs = folds(ratings, folds=4)
    assert len(pairs) == 4
    for fold, (training, test) in enumerate(pairs):
        assert (cells(training), cells(test)) == tuple(map(cells, split(ratings, fold, folds=4)))
    assert [len(one) for one in zip(*folds(ratings, how="user"), strict=True)] == [5, 5]


@given(count=st.integers(2, 20), seed=st.integers(0, 2**40))
def test_folds_are_equal_parts(ratings: Ratings, count: int, seed: int) -> None:
    sizes = np.array([len(test) for _, test in folds(ratings, count, seed)])
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
    assert (numbers(ratings, seed=4) == numbers(ratings, seed=4)).all()
    assert (numbers(ratings, seed=4) != numbers(ratings, seed=5)).any()


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


def test_impossible_numbers_of_folds_and_shares_are_refused(ratings: Ratings) -> None:
    for count in (0, 1, 256, 10**9):
        with pytest.raises(UserError, match="folds"):
            folds(ratings, count)
    for share in (0.0, 1.0, -0.5, float("nan")):
        with pytest.raises(UserError, match="share"):
            validation_cut(ratings, share)


FIRST_FOLDS = [4, 3, 0, 4, 4, 3, 3, 3, 1, 0, 2, 1]
TIMED = pl.DataFrame(
    {
        "user": [1, 1, 1, 2, 2, 3, 4, 4],
        "item": [1, 2, 3, 1, 2, 3, 1, 4],
        "rating": [5, 4, 3, 2, 1, 5, 4, 3],
        "timestamp": [10, 30, 20, 40, 60, 50, 80, 80],
        "fold": [0, 1, 2, 0, 1, 2, 0, 1],
        "part": ["train", "test", "train", "train", "test", "train", "train", "train"],
    }
)


def pairs(ratings: Ratings) -> set[tuple[int, int]]:
    frame = ratings.to_frame()
    return set(zip(frame["user"].to_list(), frame["item"].to_list(), strict=True))


def test_by_time_the_latest_are_tested_and_one_moment_is_not_torn_apart() -> None:
    training, test = split(TIMED, how="time:0.4")
    assert training.timestamps is not None
    assert test.timestamps is not None
    assert training.timestamps.max() < test.timestamps.min()
    assert pairs(test) == {(2, 2), (4, 1), (4, 4)}
    with pytest.raises(UserError, match="of the latest moment"):
        split(TIMED.with_columns(timestamp=pl.lit(1)), how="time")


def test_the_last_of_each_user_is_tested_and_nobody_gets_cold() -> None:
    assert pairs(split(TIMED, how="last")[1]) == {(1, 2), (2, 2), (4, 4)}
    training, test = split(TIMED, how="last:2")
    assert pairs(test) == {(1, 2), (1, 3), (2, 2), (4, 4)}
    assert (np.diff(training.indptr) > 0).all()


def test_a_column_of_folds_is_the_users_own_split() -> None:
    ratings = from_frame(TIMED, fold="fold")
    assert [len(split(ratings, fold, how="column")[1]) for fold in range(3)] == [3, 3, 2]
    with pytest.raises(UserError, match="no fold 3"):
        split(ratings, 3, how="column")
    words = from_frame(TIMED, fold="part")
    assert pairs(split(words, how="column")[1]) == {(1, 2), (2, 2)}
    with pytest.raises(UserError, match="names no folds"):
        split(from_frame(TIMED), how="column")
    with pytest.raises(UserError, match=r"'b' is no fold \(column 'fold'\)"):
        from_frame(TIMED.with_columns(fold=pl.lit("b")), fold="fold")


@given(count=st.integers(2, 6), seed=st.integers(0, 1000))
def test_every_user_is_dealt_out_evenly(ratings: Ratings, count: int, seed: int) -> None:
    dealt = numbers(ratings, count, seed, "user")
    for client in range(ratings.clients):
        sizes = np.bincount(dealt[ratings.indptr[client] : ratings.indptr[client + 1]], minlength=count)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(dealt, minlength=count)
    assert sizes.min() > 0, "not everybody begins with the same fold"


@pytest.mark.parametrize(("how", "of"), [("cold-users", "client_of_rating"), ("cold-items", "items")])
def test_cold_users_and_items_have_no_training_rating(ratings: Ratings, how: str, of: str) -> None:
    tested = set()
    for fold in range(4):
        training, test = split(ratings, fold, 4, how=how)
        assert not set(getattr(training, of).tolist()) & set(getattr(test, of).tolist())
        tested |= cells(test)
    assert tested == cells(ratings)


def test_random_folds_are_what_they_always_were() -> None:
    """The numbers of every table in the documentation hang on them."""
    ratings = load("synthetic:clients=40,items=30,ratings_per_client=5")
    first = numbers(ratings)
    assert (first == numbers(ratings, 5, 0, "random")).all()
    assert first[:12].tolist() == FIRST_FOLDS


@pytest.mark.parametrize("text", ["times", "time:0", "time:1", "time:x", "last:0", "last:1.5", "random:3", "user:2"])
def test_a_split_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="split"):
        split(TIMED, how=text)


def test_without_times_there_is_no_split_by_time(ratings: Ratings) -> None:
    with pytest.raises(UserError, match="no times to split by"):
        split(ratings, how="time")


@pytest.mark.parametrize("how", ["cold-users", "cold-items"])
def test_a_cut_of_a_cold_split_holds_out_people_or_items_that_are_still_there(ratings: Ratings, how: str) -> None:
    training, _ = split(ratings, how=how)
    fitted, held_out = validation_cut(training, 0.2, how=how)
    assert 0.05 * len(training) < len(held_out) < 0.5 * len(training)
    fitted_numbers, held_numbers = (
        (each.client_of_rating if how == "cold-users" else each.items) for each in (fitted, held_out)
    )
    assert not np.isin(held_numbers, fitted_numbers).any()


def test_a_cut_leaves_out_what_the_split_does() -> None:
    rows = {
        "user": [1, 1, 1, 2, 2, 2],
        "item": [1, 2, 3, 1, 2, 3],
        "rating": [5, 4, 3, 2, 1, 5],
        "timestamp": [*range(6)],
    }
    ratings = from_frame(pl.DataFrame(rows))
    assert validation_cut(ratings, how="last:1")[1].timestamps.tolist() == [2, 5]
    assert validation_cut(ratings, how="time:0.4")[1].timestamps.tolist() == [4, 5]
