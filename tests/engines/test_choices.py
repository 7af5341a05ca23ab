"""What ranks the lists of models that learn from choices: alike in both engines, and what popularity has in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import assign
from fedrecplus.engines import engine_of, item_columns, prepare
from fedrecplus.parts.model.ials import Ials
from fedrecplus.protocol import PublicItems
from fedrecplus.testing import small_ratings
from fedrecplus.testing.example import example_config


@pytest.mark.parametrize("scale_noise", [1.0, 2.0])
@pytest.mark.parametrize("model", ["ials", "joint", "fcf"])
def test_engines_agree_on_what_ranks_lists(model: str, scale_noise: float) -> None:
    config = example_config(f"model.rule={model}", "pseudo_items.rule=none", "channel.rule=sums", "precision=float64")
    problem = prepare(small_ratings(clients=20), config)
    problem = replace(problem, public=replace(problem.public, noise=scale_noise))
    engines = [engine_of(assign(config, [f"engine={name}"])) for name in ("reference", "fast")]
    state = engines[0].start(problem)
    for _ in range(2):
        state, _ = engines[0].round(problem, state)
    X = item_columns(problem, state.server.V)
    for recency in (None, np.random.default_rng(0).uniform(size=len(problem.ratings))):
        weights = [each.user_weights(problem, state.private, X) for each in engines]
        slow, fast = (one.list_weights(problem, W, X, recency) for one, W in zip(engines, weights, strict=True))
        np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-9)


def test_components_are_kept_where_some_stand_out_and_left_out_where_all_are_alike() -> None:
    rng, kept_structure = np.random.default_rng(0), Ials().kept_structure
    public = PublicItems(np.zeros((400, 0)), np.full(400, 20))
    popular = np.outer(rng.normal(3.0, 0.3, size=400), rng.normal(size=24))
    chance = popular + rng.normal(size=(400, 24))
    M = kept_structure(chance, public)
    assert np.linalg.matrix_rank(M) == 1
    np.testing.assert_allclose(M @ M, M, atol=1e-12)
    np.testing.assert_allclose(np.abs(M @ popular[0]), np.abs(popular[0]), rtol=0.1, atol=0.05)
    taste = rng.normal(size=(400, 2)) @ rng.normal(scale=2.0, size=(2, 24))
    np.testing.assert_array_equal(kept_structure(chance + taste, public), np.eye(24))
    np.testing.assert_array_equal(kept_structure(chance[:, :8], public), np.eye(8))


def test_popularity_counts_where_items_have_few_ratings() -> None:
    model = Ials()
    options = model.settings
    few, many = (PublicItems(np.zeros((9, 0)), np.full(9, count)) for count in (5, 600))
    assert model.mixing_weights(few)[1] == pytest.approx(options.popularity_weight, rel=1e-3)
    assert model.mixing_weights(many)[1] < 1e-3 * options.popularity_weight
    assert model.mixing_weights(replace(few, noise=2.0))[0] == options.rating_weight / 2


def test_lists_of_popular_items_alone_are_a_candidate() -> None:
    ratings = small_ratings()
    config = example_config(
        "model.rule=joint",
        "channel.rule=sums",
        "pseudo_items.rule=none",
        "model.structure=popular",
        "model.popularity_weight=1000",
    )
    assert {"structure": "popular", "popularity_weight": 1000.0} in config.model.head_choices()[-2].candidates
    problem, engine = prepare(ratings, config), engine_of(config)
    X = item_columns(problem, engine.start(problem).server.V)
    Z = engine.list_weights(problem, np.zeros((ratings.clients, X.shape[1])), X)
    assert Z is not None
    order = np.argsort(-(X @ Z[0]), kind="stable")
    assert list(np.diff(ratings.item_counts()[order]) <= 0) == [True] * (ratings.item_count - 1)
