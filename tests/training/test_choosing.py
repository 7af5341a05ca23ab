"""The default is what suits the data, and falls back where it is no better than means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.data import Ratings, Scale
from fedrecplus.errors import DataWarning
from fedrecplus.experiments.trivial import ndcg_of_popular, rmse_of_means
from fedrecplus.training.choosing import choose


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


def test_ratings_with_something_to_learn_take_factors_under_secure_sums() -> None:
    choice = choose(tastes())
    assert choice.config == fr.preset("fedrec+secure")
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


def test_clicks_take_what_lists_better() -> None:
    choice = choose(clicks(tastes()))
    figures = {name: float(choice.why.split(f"{name} NDCG@10 ")[1][:6]) for name in ("fedrec+secure", "fcf", "biases")}
    assert choice.config.algorithm == max(figures, key=figures.__getitem__)
    assert choice.config.channel.rule == "secure"


@pytest.mark.parametrize("frame", [tastes(clients=4), clicks(tastes(clients=3))], ids=["ratings", "clicks"])
def test_few_people_get_means_and_are_told(frame: Ratings) -> None:
    with pytest.warns(DataWarning, match="too few"):
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
