"""Items that enter a trained model: a row from their features first, trained from then on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.data import Ratings
from fedrecplus.engines import SimulationState, engine_of, item_columns, prepare, start_private
from fedrecplus.errors import UserError
from fedrecplus.rounds import extend_server
from fedrecplus.testing import small_ratings

MODELS = ["reconstruction", "joint", "mf"]


def config_of(model: str) -> Config:
    return assign(Config(), [f"model.rule={model}", "channel.rule=sums", "precision=float64", "server.rounds=40"])


def popular_last() -> Ratings:
    """Ratings whose most popular item has the last number."""
    ratings = small_ratings(clients=200, items=40)
    count, clients = ratings.item_count, ratings.client_of_rating
    moved = (ratings.items.astype(np.int64) - 1) % count
    order = np.lexsort((moved, clients))
    catalogue = ratings.catalogue
    assert catalogue is not None
    turned = replace(catalogue, years=np.roll(catalogue.years, -1), genres=np.roll(catalogue.genres, -1, axis=0))
    return replace(
        ratings, items=moved[order].astype(ratings.items.dtype), codes=ratings.codes[order], catalogue=turned
    )


def without_last(ratings: Ratings) -> Ratings:
    catalogue, count = ratings.catalogue, ratings.item_count - 1
    assert catalogue is not None
    kept = ratings.where(ratings.items != count)
    shorter = replace(
        catalogue, titles=catalogue.titles[:count], years=catalogue.years[:count], genres=catalogue.genres[:count]
    )
    return replace(kept, item_ids=kept.item_ids[:count], catalogue=shorter)


def error_of_last(problem, state) -> float:
    """RMSE of the ratings of the last item, which the person's weights were solved without."""
    ratings = problem.ratings
    X = item_columns(problem, state.server.V)
    known = prepare(ratings.where(ratings.items != ratings.item_count - 1), problem.config, problem.public)
    W = engine_of(problem.config).user_weights(known, state.private, X)
    own = ratings.items == ratings.item_count - 1
    clients = ratings.client_of_rating[own]
    rated_more = np.diff(known.ratings.indptr)[clients] > 0
    errors = ratings.standard_values[own] - W[clients] @ X[-1]
    return float(np.sqrt((errors[rated_more] ** 2).mean()))


@pytest.mark.parametrize("model", MODELS)
def test_an_item_enters_with_a_sensible_row_and_gets_better(model: str) -> None:
    ratings, config = popular_last(), config_of(model)
    earlier = prepare(without_last(ratings), config)
    engine = engine_of(config)
    state = engine.start(earlier)
    for _ in range(10):
        state, _ = engine.round(earlier, state)
    later = prepare(ratings, config)
    server = extend_server(state.server, earlier.public, later.public, config)
    np.testing.assert_array_equal(server.V[:-1], state.server.V)
    assert server.round == 10
    private = replace(start_private(later), U=state.private.U)
    state = SimulationState(server, private)
    first = error_of_last(later, state)
    for _ in range(15):
        state, _ = engine.round(later, state)
    last = error_of_last(later, state)
    assert np.isfinite(first)
    assert last < first
    if model != "mf":  # which starts from noise, and has no baseline
        assert first < 1.05 * ratings.standard_values[ratings.items == ratings.item_count - 1].std() + 0.5


def test_items_that_vanish_are_refused() -> None:
    ratings, config = popular_last(), config_of("reconstruction")
    earlier, later = prepare(without_last(ratings), config), prepare(ratings, config)
    state = engine_of(config).start(later)
    with pytest.raises(UserError, match="can't go on"):
        extend_server(state.server, later.public, earlier.public, config)
