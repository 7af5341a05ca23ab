"""Ratings of two files are joined by id, whatever numbers the ids have in each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.data import Ratings, Scale, split
from fedrecplus.data.joining import join
from fedrecplus.errors import UserError
from fedrecplus.training import train
from tests.small_data import small_ratings

TRAINING, TEST = split(small_ratings(), 0)


def renumbered(ratings: Ratings, seed: int = 0) -> Ratings:
    """The same ratings as another file would number them: clients and items in another order, unrated ones left out."""
    rng = np.random.default_rng(seed)
    who, what = ratings.client_of_rating.astype(np.int64), ratings.items.astype(np.int64)
    clients, items = rng.permutation(np.unique(who)), rng.permutation(np.unique(what))
    new_who, new_what = (
        np.argsort(clients)[np.searchsorted(np.sort(clients), who)],
        np.argsort(items)[np.searchsorted(np.sort(items), what)],
    )
    order = np.lexsort((new_what, new_who))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(new_who, minlength=len(clients)))])
    return replace(
        ratings,
        indptr=indptr,
        items=new_what[order].astype(ratings.items.dtype),
        codes=ratings.codes[order],
        client_ids=ratings.client_ids[clients],
        item_ids=ratings.item_ids[items],
        catalogue=None,
    )


def triples(ratings: Ratings) -> set[tuple[object, object, float]]:
    clients, items = ratings.client_ids[ratings.client_of_rating], ratings.item_ids[ratings.items]
    return set(zip(clients.tolist(), items.tolist(), ratings.values.tolist(), strict=True))


def test_another_file_s_numbers_change_no_error() -> None:
    expected = train(TRAINING, TEST, "fedmf-vanilla").rmse
    assert train(TRAINING, renumbered(TEST), "fedmf-vanilla").rmse == pytest.approx(expected, abs=1e-12)


def test_ids_of_the_test_alone_are_cold_and_counted() -> None:
    strange = replace(TEST, client_ids=TEST.client_ids.copy())
    busy = int(np.argmax(np.diff(TEST.indptr)))
    strange.client_ids[busy] = 10**6
    run = train(TRAINING, strange, "fedmf-vanilla")
    assert run.result["test_ratings"] == len(TEST)
    assert run.result["cold_test_ratings"] >= np.diff(TEST.indptr)[busy] > 0


def test_joined_ratings_say_the_same_of_the_same_ids() -> None:
    other = renumbered(TEST, seed=5)
    training, test = join(TRAINING, other)
    assert triples(test) == triples(TEST)
    assert triples(training) == triples(TRAINING)
    assert (test.client_ids == training.client_ids).all()
    assert (test.item_ids == training.item_ids).all()


def test_text_and_numbers_that_mean_the_same_are_joined() -> None:
    text = replace(TEST, client_ids=TEST.client_ids.astype(str), item_ids=TEST.item_ids.astype(str))
    assert len(triples(join(TRAINING, text)[1])) == len(TEST)


@pytest.mark.parametrize("kind", ["client", "item"])
def test_nothing_in_common_is_an_error_that_names_some_of_both(kind: str) -> None:
    ids = getattr(TEST, f"{kind}_ids") + 10**6
    with pytest.raises(UserError, match=f"no {kind} in common.*{ids[0]}"):
        join(TRAINING, replace(TEST, **{f"{kind}_ids": ids}))


def test_a_test_rating_off_the_training_s_scale_is_refused() -> None:
    halves = replace(TEST, scale=Scale(0.5, 5.0, 0.5), codes=np.zeros_like(TEST.codes))
    with pytest.raises(UserError, match=r"0\.5 is not on the training ratings' scale"):
        join(TRAINING, halves)


def test_a_run_without_test_ratings_says_that_it_has_no_error() -> None:
    with pytest.raises(UserError, match="without test ratings"):
        _ = train(TRAINING, None, "fedmf-vanilla").rmse
