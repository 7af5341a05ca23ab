"""Lists: weights of their own, seen items, exploring and its price, reasons, and people without ratings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import assign, preset
from fedrecplus.errors import UserError
from fedrecplus.parts.model import Model
from fedrecplus.training import Recommender, train
from fedrecplus.training.lists import ListOptions, diversified, similarities
from tests.small_data import small_ratings

OUTSIDE = "tests.training.list_model"
RATINGS = small_ratings()
FEDMF = assign(preset("fedmf"), ["server.rounds=5"])
LISTS = assign(FEDMF, [f"model.rule={OUTSIDE}"])


@pytest.fixture(scope="module")
def plain() -> Recommender:
    return train(RATINGS, None, FEDMF).recommender


@pytest.fixture(scope="module")
def with_lists(tmp_path_factory: pytest.TempPathFactory) -> Recommender:
    folder = tmp_path_factory.mktemp("run")
    train(RATINGS, None, LISTS, out=folder, overwrite=True)
    return Recommender.load(folder, [OUTSIDE])


def named(best: list[Any]) -> list[int]:
    return [one.item for one in best]


def test_weights_for_lists_are_saved_and_rank(with_lists: Recommender, plain: Recommender) -> None:
    person = with_lists.client(3)
    best = with_lists.top_items(3, n=40)
    expected = person.model.X @ person.z
    assert [one.score for one in best] == pytest.approx(sorted(expected[named(best)], reverse=True))
    assert named(best) != named(plain.top_items(3, n=40))
    by_rating = with_lists.top_items(3, n=40, by="rating")
    assert named(by_rating) == named(plain.top_items(3, n=40))
    ratings = {one.item: one.rating for one in by_rating}
    assert all(one.rating == ratings[one.item] for one in best), "predicted ratings stay what they are"


def test_a_newcomer_with_a_client_s_ratings_gets_that_client_s_list(with_lists: Recommender) -> None:
    items, values = RATINGS.of(5)
    newcomer = with_lists.fold_in(dict(zip(items.tolist(), values.tolist(), strict=True)))
    assert named(newcomer.top_items(8)) == named(with_lists.top_items(5, 8))


@pytest.mark.whole
def test_evaluation_ranks_by_them_too(with_lists: Recommender) -> None:
    training, test = fr.split(RATINGS, 0)
    run = fr.train(training, test, LISTS)
    popularity = fr.compare(RATINGS, ["popularity"], folds=5).rows[0]["ranking"]
    assert run.ranking["ndcg@20"] == pytest.approx(fr.evaluate(run, training, test)["ndcg@20"])
    assert abs(run.ranking["popularity@5"] - popularity["popularity@5"]) < 0.05


def test_people_without_ratings_get_what_is_popular_without_reasons(with_lists: Recommender) -> None:
    newcomer = with_lists.fold_in({})
    popularity = RATINGS.item_counts()
    best = newcomer.top_items(5, why=True, explore=0.2)
    assert popularity[named(newcomer.top_items(5))].tolist() == sorted(popularity, reverse=True)[:5]
    assert all(one.because == () for one in best)


def test_a_little_exploring_changes_a_list_whose_scores_are_far_apart(plain: Recommender) -> None:
    V = np.random.default_rng(1).standard_normal((40, 64))  # no two items are very much alike
    model, scores = replace(plain.model, V=V), np.maximum(1.0 - 0.16 * np.arange(40), 0.0)
    explored = diversified(scores, model, 6, 0.3)
    assert explored[0] == 0
    assert set(explored.tolist()) != set(range(6))


@pytest.mark.parametrize("explore", [0.3, 1.0])
def test_exploring_gives_items_less_alike_and_names_its_price(plain: Recommender, explore: float) -> None:
    person = plain.client(3)
    found = person.top_list(ListOptions(6, explore=explore))
    assert found.price is not None
    before, after = found.price.plain, found.price.explored
    assert after.similarity < before.similarity
    assert after.score <= before.score
    assert after.rating == pytest.approx(np.mean([one.rating for one in found.items]))
    best = named(list(found.items))
    assert after.popularity == pytest.approx(RATINGS.item_counts()[best].mean())
    pairs = similarities(plain.model, np.array(best))[np.triu_indices(6, 1)]
    assert after.similarity == pytest.approx(pairs.mean())
    assert not set(best) & set(RATINGS.of(3)[0].tolist())
    assert person.top_list(ListOptions(6)).price is None


@pytest.mark.parametrize("by", ["list", "rating"])
def test_the_best_reasons_are_those_that_leaving_out_costs_most(with_lists: Recommender, by: str) -> None:
    items, values = RATINGS.of(4)
    newcomer = with_lists.fold_in(dict(zip(items.tolist(), values.tolist(), strict=True)))
    best = newcomer.top_items(3, by=by, why=True)
    assert best == newcomer.top_items(3, by=by, why=True)
    model, numbers = with_lists.model, np.array([int(item) for item in items])
    shares = model.weight_shares(newcomer.items, newcomer.ratings, by) @ model.X[named(best)].T
    taken = []
    for item in items.tolist():
        rest = {i: r for i, r in zip(items.tolist(), values.tolist(), strict=True) if i != item}
        without = {one.item: one.score for one in with_lists.fold_in(rest).top_items(40, by=by, include_seen=True)}
        taken.append([one.score - without[one.item] for one in best])
    assert np.corrcoef(shares.ravel(), np.ravel(taken))[0, 1] > 0.9
    order = np.argsort(-shares[:, 0], kind="stable")[:3]
    assert [reason.item for reason in best[0].because] == [int(numbers[j]) for j in order if shares[j, 0] > 0]
    assert best[0].because[0].title == f"Item {best[0].because[0].item}"


@pytest.mark.parametrize("name", ["fedmf", "pmf", "fedrec+private", "fedrec+secure", "fcf"])
def test_shares_and_what_no_rating_gave_add_up_to_the_weights(name: str) -> None:
    model = train(RATINGS, None, assign(preset(name), ["server.rounds=2"])).recommender.model
    items, values = RATINGS.of(4)
    ratings = model.scale.standardise(values)
    rests = []
    for given in (ratings, ratings[::-1].copy()):
        w = model.fold_in(items, given)
        rests.append(w - model.weight_shares(items, given, "rating").sum(axis=0))
    np.testing.assert_allclose(rests[0], rests[1], atol=1e-9, err_msg="weights are linear in ratings")


def test_a_model_that_says_nothing_of_shares_has_them_by_leaving_out() -> None:
    model = train(RATINGS, None, assign(preset("fedrec+secure"), ["server.rounds=2"])).recommender.model
    items, values = RATINGS.of(4)
    rest = np.delete(items, 1), np.delete(model.scale.standardise(values), 1)
    given = (model.X, items, model.scale.standardise(values), model.public)
    rule = model.config.model
    expected = model.fold_in(items, given[2]) - model.fold_in(*rest)
    np.testing.assert_allclose(Model.weight_shares(rule, *given)[1], expected)
    lists = [model.list_weights(model.fold_in(i, r), i, r) for i, r in ((items, given[2]), rest)]
    np.testing.assert_allclose(Model.list_weight_shares(rule, *given)[1], lists[0] - lists[1])


def test_wishes_that_mean_nothing_are_refused(plain: Recommender) -> None:
    with pytest.raises(UserError, match="did you mean 'rating'"):
        plain.top_items(1, by="ratings")
    for explore in (-0.1, 1.5, float("nan")):
        with pytest.raises(UserError, match="explore is"):
            plain.top_items(1, explore=explore)


def test_the_command_gives_every_client_s_list_with_reasons_and_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    train(replace(RATINGS, name="r"), None, FEDMF, out="run")
    command = ["recommend", "run", "--client", "3", "--client", "7", "-n", "4"]
    assert exit_code_of([*command, "--json", "best.json", "--explore", "0.4"]) == 0
    rows, out = json.loads(Path("best.json").read_text()), capsys.readouterr().out
    assert [row["user"] for row in rows] == ["3"] * 4 + ["7"] * 4
    assert all(reason["title"] in out for row in rows for reason in row["because"])
    assert rows[0]["price"]["explored"]["similarity"] < rows[0]["price"]["plain"]["similarity"]
    assert out.count("explored: score") == 2
    assert exit_code_of([*command, "--no-why", "--by", "rating", "--include-seen"]) == 0
    out = capsys.readouterr().out
    assert "because" not in out
    assert "explored" not in out
    assert exit_code_of([*command, "--explore", "2"]) == 2
