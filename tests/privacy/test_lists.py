"""Lists under a budget: ranked by predicted rating and noisy popularity, which is released in any case."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import change, preset, with_budget
from fedrecplus.engines import engine_of, item_columns, prepare, rounds
from fedrecplus.parts.model.reconstruction import POPULARITY
from fedrecplus.training.judging import predictor_of
from tests.small_data import small_ratings


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_both_engines_add_noisy_popularity_to_the_predicted_rating(engine: str) -> None:
    ratings = small_ratings(clients=16, items=30)
    config = with_budget(preset("fedrec+secure"), 5.0, 1e-4, "central", ratings.clients)
    weight = config.model.settings.popularity_weight
    assert weight == pytest.approx(1.5 / config.model.settings.public_scale, abs=0.01)
    config = change(change(config, "engine", engine), "precision", "float64")
    problem, made = prepare(ratings, config), engine_of(config)
    *_, (state, _) = rounds(made, problem)
    found = predictor_of(made, problem, state, lists=True)
    assert found.Z is not None
    more = item_columns(problem, state.server.V)[:, POPULARITY] * weight
    np.testing.assert_allclose(found.X @ found.Z[0], found.X @ found.W[0] + more, rtol=1e-9, atol=1e-9)
