"""Predictions, top-N lists and newcomers, from a training and from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import assign, preset
from fedrecplus.data import Catalogue
from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError
from fedrecplus.training import Recommender, train
from tests.small_data import small_ratings

RATINGS = small_ratings()
CONFIG = assign(preset("fedmf"), ["server.rounds=20"])


@pytest.fixture(scope="module")
def recommender() -> Recommender:
    return train(RATINGS, None, CONFIG).recommender


def test_recommended_items_are_unrated_and_best_first(recommender: Recommender) -> None:
    best = recommender.top_items(3, n=40)
    rated = set(RATINGS.of(3)[0].tolist())
    assert {item.item for item in best} == set(range(40)) - rated
    assert {item.item for item in recommender.top_items(3, n=40, include_seen=True)} == set(range(40))
    ratings = [item.rating for item in best]
    assert ratings == sorted(ratings, reverse=True)
    assert best[0].title == f"Item {best[0].item}"
    assert recommender.predict(3, [best[0].item]).tolist() == [best[0].rating]


@pytest.mark.parametrize("text_ids", [False, True])
def test_a_loaded_recommender_is_the_same(tmp_path: Path, text_ids: bool) -> None:
    ratings = RATINGS
    if text_ids:
        clients, items = (np.array([f"{kind}{n}" for n in range(count)]) for kind, count in (("é", 30), ("i", 40)))
        ratings = replace(RATINGS, client_ids=clients, item_ids=items, catalogue=None)
    run = train(ratings, None, CONFIG, out=tmp_path)
    client = "é4" if text_ids else 4
    assert Recommender.load(tmp_path).top_items(client, 5) == run.recommender.top_items(client, 5)


@pytest.mark.parametrize("scale", [Scale(1.0, 5.0, 1.0), Scale(0.0, 1.0, 1.0)], ids=str)
def test_a_newcomer_with_a_client_s_ratings_is_predicted_like_that_client(scale: Scale) -> None:
    whole = small_ratings(scale=scale)
    recommender = train(whole, None, CONFIG).recommender
    items, ratings = whole.of(5)[0], scale.restore(whole.of(5)[1])
    newcomer = recommender.fold_in(dict(zip(items.tolist(), ratings.tolist(), strict=True)))
    np.testing.assert_allclose(newcomer.predict(range(40)), recommender.predict(5, range(40)), rtol=1e-4, atol=1e-5)
    assert not {item.item for item in newcomer.top_items(40)} & set(items.tolist())


@pytest.mark.parametrize("described", [True, False])
def test_an_item_that_nobody_rated_is_predicted_by_its_genres_or_by_the_person_alone(described: bool) -> None:
    genres = np.arange(40)[:, None] % 2 == np.arange(2)
    genres[7] &= described
    catalogue = Catalogue(("",) * 40, np.zeros(40, np.int16), genres, ("odd", "even"))
    ratings = replace(RATINGS.where(RATINGS.items != 7), catalogue=catalogue)
    recommender = train(ratings, None, assign(preset("fedrec+secure"), ["server.rounds=2"])).recommender
    (items, own), public = ratings.of(3), recommender.model.public
    met = public.average[items]
    mean = public.mean + (own - met).sum() / (len(own) + 5) + (met - public.mean).sum() / (len(own) + 20)
    assert (recommender.predict(3, [7])[0] == pytest.approx(ratings.scale.restore(mean))) != described
    assert recommender.model.known[7] == described
    lists = [person.top_items(40)[-1].item for person in (recommender.client(3), recommender.fold_in({1: 5.0}))]
    assert described or lists == [7, 7]


@pytest.mark.parametrize("algorithm", ["fedrec", "fedmf", "fedrec+secure"])
def test_a_newcomer_without_ratings_gets_what_is_popular_and_the_items_means(algorithm: str) -> None:
    popularity, averages = RATINGS.item_counts(), RATINGS.item_means()
    few = assign(preset(algorithm), ["server.rounds=2", "server.held_back=0"])  # or means are of what is not kept back
    newcomer = train(RATINGS, None, few).recommender.fold_in({})
    assert popularity[newcomer.top_items(3)[0].item] == popularity.max()
    assert newcomer.predict(range(40)) == pytest.approx(averages)


def test_predictions_stay_on_the_scale() -> None:
    ratings = small_ratings(scale=Scale(0.0, 100.0, 1.0))
    predicted = train(ratings, None, CONFIG).recommender.predict(2, range(40))
    assert predicted.min() >= 0
    assert predicted.max() <= 100
    assert predicted.max() > 6


def test_unknown_ids_and_ratings_off_the_scale_are_errors(recommender: Recommender) -> None:
    with pytest.raises(UserError, match="unknown client 'nobody'"):
        recommender.top_items("nobody")
    with pytest.raises(UserError, match="unknown item 99"):
        recommender.predict(1, [99])
    with pytest.raises(UserError, match="not all on the scale"):
        recommender.fold_in({1: 7.0})
    with pytest.raises(UserError, match="at least one"):
        recommender.top_items(1, n=0)
    with pytest.raises(UserError, match="no such folder"):
        Recommender.load("nowhere")
