"""The default is what suits the data, and falls back where it is no better than means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.config import assign
from fedrecplus.data import Ratings, Scale
from fedrecplus.errors import DataWarning
from fedrecplus.experiments.trivial import ndcg_of_popular, rmse_of_means
from fedrecplus.parts.channel import least_persons
from fedrecplus.training.choosing import (
    Choice,
    Validated,
    _cut,
    _validated_choice,
    _widened,
    _wider,
    choose,
    left_out_of_sums,
)


def tastes(clients: int = 120, items: int = 60, noise: float = 0.02, seed: int = 0) -> Ratings:
    """People of two tastes, who choose and like the items of their own."""
    rng = np.random.default_rng(seed)
    taste, kind = rng.integers(2, size=clients), np.arange(items) % 2
    rows = [np.sort(rng.choice(items, 24, replace=False, p=_odds(kind == taste[u]))) for u in range(clients)]
    liked = np.concatenate([kind[row] == taste[u] for u, row in enumerate(rows)])
    codes = np.clip(np.rint(1.0 + 3.0 * liked + noise * rng.normal(size=len(liked))), 0, 4).astype(np.uint8)
    indptr = np.arange(clients + 1, dtype=np.int64) * 24
    ids = np.arange(clients), np.arange(items)
    return Ratings("tastes", Scale(1.0, 5.0, 1.0), indptr, np.concatenate(rows).astype(np.uint16), codes, *ids)


def _odds(own: np.ndarray) -> np.ndarray:
    odds = np.where(own, 3.0, 1.0)
    return odds / odds.sum()


def clicks(ratings: Ratings) -> Ratings:
    return replace(ratings, scale=Scale(0.0, 1.0, 1.0), codes=np.ones_like(ratings.codes))


def with_times(ratings: Ratings) -> Ratings:
    return replace(ratings, timestamps=np.random.default_rng(3).permutation(len(ratings)).astype(np.int64))


def test_ratings_with_something_to_learn_take_factors_under_secure_sums() -> None:
    choice = choose(tastes())
    assert choice.config.algorithm == "fedrec+secure"
    assert "biases RMSE" in choice.why


def test_chance_takes_biases_and_is_no_worse_than_they_are() -> None:
    ratings = tastes()
    chance = replace(ratings, codes=np.random.default_rng(1).permutation(ratings.codes))
    training, test = fr.split(chance)
    choice = choose(training)
    run = fr.train(training, test, choice.config)
    assert run.rmse <= 1.02 * rmse_of_means(training, test)
    assert run.ranking["ndcg@10"] >= 0.9 * ndcg_of_popular(training, test, 4.0)


def test_the_preset_biases_is_the_baseline_of_comparisons() -> None:
    training, test = fr.split(tastes(), 1)
    run = fr.train(training, test, "biases")
    assert run.rmse == pytest.approx(rmse_of_means(training, test), rel=0.02)
    assert run.ranking["ndcg@10"] == pytest.approx(ndcg_of_popular(training, test, 4.0))


def test_clicks_with_something_to_learn_take_factors_and_lists_beat_popularity() -> None:
    training, test = fr.split(clicks(tastes()))
    choice = choose(training)
    assert choice.config.algorithm == "fedrec+secure"
    assert fr.train(training, test, choice.config).ranking["ndcg@10"] > ndcg_of_popular(training, test, 4.0)


def test_nearly_all_columns_of_clicks_are_of_choices() -> None:
    for people, columns in ((400, 68), (1000, 132)):  # 160 and 400 ratings an item
        ratings = clicks(tastes(clients=people))
        chosen = choose(ratings, validate=False).config
        (wide,) = _wider(chosen, ratings)
        assert (chosen.model.settings.factors, wide.model.settings.factors) == (4, 4)
        assert (chosen.model.columns, wide.model.columns) == (36, columns)


def test_clicks_of_items_that_many_chose_take_the_most_columns_and_try_nothing_smaller() -> None:
    why = choose(clicks(tastes(clients=1000))).why
    assert "with 132 columns" in why
    assert "with 36 columns" not in why


@pytest.mark.parametrize("frame", [tastes(clients=4), clicks(tastes(clients=3))], ids=["ratings", "clicks"])
def test_few_people_get_means_and_are_told(frame: Ratings) -> None:
    with pytest.warns(DataWarning, match="too few.*in the clear"):
        model = fr.FedRec().fit(frame)
    assert model.run_.result["algorithm"] == "biases"
    assert len(model.recommend([0], n=3)) == 3


def test_people_whom_the_cut_leaves_without_ratings_are_too_few() -> None:
    ten = tastes(clients=10)
    once = ten.where(np.arange(len(ten)) % 24 == 0)
    assert choose(once).config.algorithm == "biases"


def test_settings_of_one_s_own_are_of_one_algorithm() -> None:
    model = fr.FedRec(model__factors=4, server__rounds=2).fit(tastes())
    assert (model.run_.config.algorithm, model.run_.config.server.rounds) == ("fedrec+secure", 2)
    assert not hasattr(model, "choice_")


def test_a_training_part_of_one_moment_is_cut_by_chance() -> None:
    ratings = tastes()
    same = replace(ratings, timestamps=np.zeros(len(ratings), np.int64))
    assert len(_cut(same, 0, "time:0.2")[1]) == round(0.1 * len(ratings))


@pytest.mark.parametrize("how", ["random", "time:0.1", "last:1", "cold-users", "cold-items"])
def test_the_default_is_no_worse_than_biases_on_any_split(how: str) -> None:
    training, test = fr.split(with_times(tastes()), how=how)
    run = fr.train(training, test, choose(training, how=how).config)
    assert run.rmse <= 1.03 * rmse_of_means(training, test)


def found(rmse: float | None, ndcg: float, spread: float = 0.0) -> Validated:
    by_client = ndcg + spread * np.random.default_rng(0).normal(size=500)
    return Validated(fr.preset("fedrec+secure"), rmse, ndcg, by_client, 0.0)


def test_more_columns_must_be_worth_their_bytes() -> None:
    small, clicks_alone = found(0.9, 0.2), found(None, 0.2)
    assert found(0.9, 0.23).is_worth_more_than(small)
    assert not found(0.9, 0.21).is_worth_more_than(small)
    assert not found(0.91, 0.23).is_worth_more_than(small)
    assert not found(0.9, 0.23, spread=0.9).is_worth_more_than(small)
    assert found(0.895, 0.19).is_worth_more_than(small)
    assert not found(0.898, 0.2).is_worth_more_than(small)
    assert not found(0.895, 0.17).is_worth_more_than(small)
    assert found(None, 0.23).is_worth_more_than(clicks_alone)
    assert not found(None, 0.21).is_worth_more_than(clicks_alone)


def test_lists_that_gain_several_tenths_may_cost_as_many_shares_of_error() -> None:
    small = found(0.9, 0.2)
    assert found(0.91, 0.26).is_worth_more_than(small)
    assert not found(0.912, 0.26).is_worth_more_than(small)
    assert not found(0.91, 0.26, spread=2.0).is_worth_more_than(small)


@pytest.mark.parametrize(
    ("items", "people", "columns"),
    [(999, 400, 68), (1_000, 395, 68), (1_000, 396, 132), (4_096, 400, 132), (4_097, 400, 68)],
)
def test_sparse_data_get_most_columns_where_there_are_items_and_people_enough(
    items: int, people: int, columns: int
) -> None:
    suited, ratings = fr.preset("fedrec+secure"), replace(tastes(clients=people), item_ids=np.arange(items))
    (sparse,) = _wider(suited, ratings)
    assert least_persons(132) == 396
    assert _widened(Choice(sparse, ""), suited, ratings).config.model.columns == columns
    assert _widened(Choice(suited, ""), suited, ratings).config == suited


def test_ratings_of_items_with_too_few_raters_for_a_sum_are_counted() -> None:
    ratings = tastes(clients=400, items=60)
    few = ratings.where((ratings.items != 7) | (ratings.client_of_rating < 40))
    rated = int(few.item_counts()[7])
    plain = fr.preset("fedrec+secure")
    sums = [assign(plain, [f"channel.fewest_contributors={least}"]) for least in (rated, rated + 1)]
    assert [left_out_of_sums(few, config) for config in sums] == [0.0, rated / len(few)]
    assert left_out_of_sums(few, fr.preset("fedmf")) == 0.0


def test_more_columns_are_not_tried_where_their_sums_could_be_taken_apart() -> None:
    suited, least = fr.preset("fedrec+secure"), least_persons(68)
    assert len(_wider(suited, tastes(clients=least))) == 1
    assert _wider(suited, tastes(clients=least - 1)) == ()


def test_a_choice_costs_less_than_two_trainings_of_the_preset() -> None:
    ratings = tastes(clients=400)
    choice = choose(ratings)
    run = fr.train(ratings, None, "fedrec+secure")
    assert 0 < choice.bytes_up <= 2 * run.result["bytes_up_per_client_round"] * run.result["rounds"]


@pytest.mark.parametrize("rmse", [0.9, None], ids=["ratings", "clicks"])
def test_a_choice_of_biases_says_why_in_terms_of_the_data_and_how_long_each_was_tried(rmse: float | None) -> None:
    suited, plain = fr.preset("fedrec+secure"), fr.preset("biases")

    def validated(config: fr.Config, rounds: int) -> Validated:
        better = config.algorithm == "biases"
        error = None if rmse is None else rmse - 0.1 * better
        return Validated(config, error, 0.2 + 0.1 * better, np.full(50, 0.2 + 0.1 * better), 0.0, rounds)

    kind = "clicks" if rmse is None else "ratings"
    choice = _validated_choice((suited, suited), plain, kind, validated)
    assert choice.config.algorithm == "biases"
    assert choice.why.count(" columns after 12 rounds instead of 5") == 1
    assert ("both better ratings" in choice.why) == (kind == "ratings")
    assert "on a validation cut: biases" in choice.why
