"""Choices under a budget: a table that starts from public features, noise told from them, and lists by popularity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import assign, change, preset, with_budget
from fedrecplus.engines import engine_of, item_columns, prepare, rounds
from fedrecplus.parts.model._noisy_choices import rows_of_features, without_noise
from fedrecplus.parts.model.reconstruction import POPULARITY
from fedrecplus.protocol import PublicItems, Sums
from fedrecplus.training.evaluation import predictor_of
from tests.audit.conftest import small_town
from tests.small_data import small_ratings


def items(content: np.ndarray) -> PublicItems:
    count = len(content)
    return PublicItems(content=content, popularity=np.arange(1, count + 1), average=np.full(count, 3.0), people=40)


def test_items_that_are_alike_start_alike_and_longer_where_more_people_chose_them() -> None:
    genres = np.repeat(np.eye(3), 10, axis=0)
    W = rows_of_features(7, 6, items(genres))
    lengths = np.linalg.norm(W, axis=1)
    assert lengths[9] > 2.0 * lengths[0]
    ways = W / lengths[:, None]
    np.testing.assert_allclose(ways[0], ways[9])
    assert ways[0] @ ways[15] < 0.99


def test_without_features_no_two_items_start_alike() -> None:
    ways = rows_of_features(7, 6, items(np.zeros((30, 0))))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    assert (np.abs(ways @ ways.T - np.eye(30)) < 0.999999).all()


def test_noise_is_taken_for_nothing_and_what_is_beyond_it_is_kept() -> None:
    random, people = np.random.default_rng(3), np.full(400, 25.0)
    said = np.stack([random.normal(0.0, 5.0, 400), np.zeros(400)], axis=1)
    heard = said + random.normal(0.0, 2.0, said.shape)
    found = without_noise(heard, 2.0, people)
    assert np.mean((found - said) ** 2) < 0.7 * np.mean((heard - said) ** 2)
    assert np.mean(found[:, 1] ** 2) < 0.1 * np.mean(heard[:, 1] ** 2)
    np.testing.assert_allclose(without_noise(1e6 * said, 2.0, people)[:, 0], 1e6 * said[:, 0], rtol=1e-3)


def test_ratings_are_learnt_from_noisy_sums_as_without_choices() -> None:
    """Both halves of the server know the noise."""
    random, public = np.random.default_rng(5), items(np.eye(4)[np.arange(20) % 4])
    config = assign(
        preset("fedrec+secure"), ["model.factors=3", "model.interaction_factors=4", "model.interaction_start=features"]
    )
    model = config.model
    V, total = random.normal(size=(20, 7)), random.normal(size=(20, 7))
    sums = Sums(total, np.full(20, 5.0), 1.0, 1, statistic=random.normal(size=10), noise=3.0)
    of_ratings = model.rating_model.update_items(replace(sums, total=total[:, :3]), V[:, :3], public)
    step = model.update_items(sums, V, public)
    np.testing.assert_allclose(step[:, :3], of_ratings)
    quiet = model.update_items(replace(sums, noise=0.0), V, public)
    assert not np.allclose(step[:, 3:], quiet[:, 3:])


@pytest.mark.parametrize(("people", "rule"), [(943, "reconstruction"), (6040, "joint")])
def test_choices_have_a_table_of_their_own_where_people_are_many(people: int, rule: str) -> None:
    assert with_budget(preset("fedrec+secure"), 10.0, 1e-5, "central", people).model.rule == rule
    assert with_budget(preset("fedmf"), 10.0, 1e-5, "central", people).model.rule == "reconstruction"


@pytest.mark.parametrize("noise", ["central", "distributed"])
def test_a_training_with_both_tables_under_a_budget_stays_finite(noise: str) -> None:
    pytest.importorskip("dp_accounting")
    config = with_budget(preset("fedrec+secure"), 10.0, 1e-5, noise, 6040)
    problem = prepare(small_town(), replace(assign(config, ["privacy.delta=1e-3"]), seeded_noise=True))
    *_, (state, _) = rounds(engine_of(problem.config), problem)
    assert np.isfinite(state.server.V).all()
    lengths = np.sum(state.server.V[:, 4:] ** 2, axis=1)
    assert 0.0 < problem.public.popularity @ lengths / problem.public.popularity.sum() < 10.0


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
