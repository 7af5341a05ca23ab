"""Public traits of items beside the factors: what they are, what they foretell, and what a refit makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.model import Shape, predict
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds.refit import expected, prediction_table, refit, widened
from fedrecplus.rounds.traits import foretold_rows, trait_columns

ITEMS = 40
DRAWS = np.random.default_rng(3)
COUNTS = DRAWS.permutation(np.geomspace(1, 400, ITEMS).astype(np.int64))
GENRES = (DRAWS.random((ITEMS, 3)) < 0.4).astype(np.float64)
PUBLIC = PublicItems(GENRES, COUNTS, DRAWS.uniform(2.0, 4.5, ITEMS))


def config_of(*changes: str) -> Config:
    return assign(Config(), ["model.factors=4", "prediction.factors=refit", *changes])


def columns(public: PublicItems, **weights: float) -> np.ndarray:
    return trait_columns(public, replace(config_of().prediction, **weights))


def test_standing_has_mean_0_and_variance_1_over_ratings() -> None:
    counts = COUNTS + 100
    table = columns(PublicItems(GENRES, counts, PUBLIC.average), traits=0.5)
    weights = counts / counts.sum()
    assert table.shape == (ITEMS, 3)
    assert (table[:, 0] == 0.5).all()
    np.testing.assert_allclose(weights @ table[:, 1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(weights @ table[:, 1:] ** 2, 0.25, rtol=1e-12)


def test_more_ratings_are_more_popular_and_the_rarest_go_no_further_than_three_deviations() -> None:
    popularity = columns(PUBLIC, traits=0.5)[np.argsort(COUNTS, kind="stable"), 1]
    assert (np.diff(popularity) >= 0).all()
    assert popularity[0] == popularity[1] == -1.5
    assert popularity[-1] < 1.5


def test_where_all_items_are_alike_nothing_tells_them_apart() -> None:
    alike = PublicItems(np.zeros((5, 0)), np.full(5, 7), np.full(5, 3.0))
    np.testing.assert_array_equal(columns(alike, traits=1.0), np.tile([1.0, 0.0, 0.0], (5, 1)))


def test_what_is_not_public_has_no_column() -> None:
    unknown = PublicItems(np.zeros((ITEMS, 0)), COUNTS)
    assert columns(unknown, traits=1.0, content=1.0).shape == (ITEMS, 2)
    assert columns(PUBLIC).shape == (ITEMS, 0)


def test_of_a_large_catalogue_the_columns_that_most_ratings_meet_are_kept() -> None:
    genres = np.eye(ITEMS)  # each item its own: the rarest eight go
    kept = columns(PublicItems(genres, COUNTS), content=2.0)
    assert kept.shape == (ITEMS, 32)
    assert set(np.flatnonzero(kept.sum(axis=1) == 0)) == set(np.argsort(-COUNTS, kind="stable")[32:])
    assert kept.max() == 2.0


def test_rows_are_foretold_by_traits() -> None:
    traits = columns(PUBLIC, traits=1.0, content=1.0)
    V = traits @ DRAWS.normal(size=(6, 4))
    np.testing.assert_allclose(foretold_rows(V, PUBLIC, 0.01), V, atol=0.35)  # ridge
    shuffled = foretold_rows(V[DRAWS.permutation(ITEMS)], PUBLIC, 0.01)
    assert np.abs(foretold_rows(V, PUBLIC, 0.01) - V).std() < 0.2 * np.abs(shuffled - V).std()


def test_before_any_rating_rows_stay_where_they_are() -> None:
    nobody = PublicItems(GENRES, np.zeros(ITEMS, dtype=np.int64))
    V = DRAWS.normal(1.0, 0.3, size=(ITEMS, 4))
    config = config_of("prediction.trait_ratings=5", "prediction.average_ratings=5")
    np.testing.assert_array_equal(prediction_table(V, nobody, 3.5, 0.0, config), V)


def test_the_fewer_ratings_the_nearer_to_what_traits_foretell() -> None:
    V = DRAWS.normal(1.0, 0.3, size=(ITEMS, 4))
    held = prediction_table(V, PUBLIC, 3.5, 0.0, config_of("prediction.trait_ratings=10"))
    way = np.linalg.norm(held - V, axis=1) / np.linalg.norm(foretold_rows(V, PUBLIC, 10.0) - V, axis=1)
    np.testing.assert_allclose(way, 10.0 / (10.0 + COUNTS), rtol=1e-9)


@pytest.mark.parametrize("biases", ["true", "false"])
def test_traits_stand_between_factors_and_item_bias(biases: str) -> None:
    config = config_of(f"model.biases={biases}", "prediction.traits=0.5", "prediction.content=1")
    V = DRAWS.normal(1.0, 0.3, size=(ITEMS, Shape.of(config.model).v_columns))
    table = prediction_table(V, PUBLIC, 3.5, 0.0, config)
    assert table.shape[1] == V.shape[1] + 6
    np.testing.assert_array_equal(np.delete(table, np.s_[4:10], axis=1), V)
    np.testing.assert_array_equal(table[:, 4:10], trait_columns(PUBLIC, config.prediction))
    U = DRAWS.normal(size=(2, V.shape[1] + 1))
    for narrow, wide in zip(U, widened(U, table, config), strict=True):
        np.testing.assert_allclose(predict(wide, table, 0.0), predict(narrow, V, 0.0), atol=1e-12)


def test_models_that_predict_with_their_own_factors_have_no_traits() -> None:
    V = np.ones((ITEMS, 4))
    config = config_of("prediction.traits=1", "prediction.trait_ratings=5", "prediction.factors=own")
    assert prediction_table(V, PUBLIC, 3.5, 0.0, config) is V


@pytest.mark.parametrize("biases", ["true", "false"])
def test_a_taste_for_a_genre_is_found_and_nobody_is_expected_to_have_one(biases: str) -> None:
    """Factors know nothing of the genre; the person gives it a point more."""
    config = config_of(f"model.biases={biases}", "prediction.shrink_to=typical", "prediction.floor=0.5")
    shape = Shape.of(config.model)
    V = DRAWS.normal(0.9, 0.1, size=(ITEMS, shape.v_columns))
    V[:, shape.factors :] = 0.0
    rated, others = np.arange(0, ITEMS, 2), np.arange(1, ITEMS, 2)
    truth = 3.0 + GENRES[:, 1]

    def error(*changes: str) -> float:
        settings = assign(config, list(changes))
        table = prediction_table(V, PUBLIC, 3.5, 0.0, settings)
        start = expected(table, COUNTS, 3.5, 0.0, settings)
        assert (start.U[4 : table.shape[1] - settings.model.biases] == 0.0).all()
        U = refit(table[rated], truth[rated], 0.0, settings, start)
        return float(np.sqrt(np.mean((predict(U, table[others], 0.0) - truth[others]) ** 2)))

    assert error("prediction.content=2") < 0.6 * error()
