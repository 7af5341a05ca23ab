"""Lists of what comes next: order in time, the decay that validation chooses, moments, and reasons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import assign, preset
from fedrecplus.data import FileOptions, ratings_of_frame
from fedrecplus.errors import UserError
from fedrecplus.parts import recency_weights
from fedrecplus.parts.model import ials
from fedrecplus.training import ListOptions, Recommender
from fedrecplus.training.recency import asks_what_is_next, comes_after

GROUPS, OF_GROUP, PEOPLE, STAY = 8, 9, 60, 5
CONFIG = assign(preset("fedrec+secure"), ["server.rounds=6", "model.factors=4", "model.interaction_factors=16"])


def walks(seed: int = 0) -> fr.Ratings:
    """People who stay with one group of items for a while, and then go on to another."""
    rng, rows = np.random.default_rng(seed), []
    for user in range(PEOPLE):
        groups = rng.permutation(GROUPS)[:4]
        items = [int(g * OF_GROUP + i) for g in groups for i in rng.permutation(OF_GROUP)[:STAY]]
        rows += [(user, item, int(rng.integers(3, 6)), time) for time, item in enumerate(items)]
    order = rng.permutation(len(rows))
    frame = pl.DataFrame([rows[k] for k in order], schema=["user", "item", "rating", "timestamp"], orient="row")
    return fr.load(frame)


@pytest.fixture(scope="module")
def run() -> fr.Run:
    training, test = fr.split(walks(), how="last:1")
    return fr.train(training, test, CONFIG)


def named(best: list[Any]) -> list[int]:
    return [one.item for one in best]


def in_group(items: list[int], item: int) -> int:
    return sum(one // OF_GROUP == item // OF_GROUP for one in items)


def test_equal_times_keep_the_order_of_the_file() -> None:
    frame = pl.DataFrame({"user": [1, 1, 2, 1, 2], "item": [9, 3, 5, 7, 4], "rating": [5, 4, 3, 2, 1], "time": [1] * 5})
    ratings = fr.load(frame)
    ages = ratings.ages()
    assert ages is not None
    assert dict(zip(ratings.item_ids[ratings.items[:3]].tolist(), ages[:3].tolist(), strict=True)) == {9: 2, 3: 1, 7: 0}
    as_text = pl.DataFrame({"item": ["9", "30", "5", "7", "4", "x"]})  # 30 comes before 4
    options = FileOptions("user", "item", "rating", timestamp="time", listed=True)
    listed = ratings_of_frame(frame.with_columns(pl.col("item").replace(3, 30)), options, items=as_text)
    assert listed.item_ids[fr.split(listed, how="last:1")[1].items].tolist() == ["7", "4"]
    training, test = fr.split(ratings, how="last:1")
    assert test.item_ids[test.items].tolist() == [7, 4]
    left = training.ages()
    assert left is not None
    assert sorted(left.tolist()) == [0, 0, 1]
    assert fr.load(frame.drop("time")).ages() is None


def test_lists_follow_where_the_order_tells_what_comes_next(run: fr.Run) -> None:
    decay = run.recommender.model.decay
    assert 0 < decay <= 10
    assert run.result["recency"] == decay
    training, test = fr.split(walks(), how="last:1")
    plain = fr.train(training, test, assign(CONFIG, ["model.recency=0"]))
    assert run.ranking["ndcg@10"] > plain.ranking["ndcg@10"] + 0.1
    assert run.rmse == plain.rmse, "training and predicted ratings are as without it"
    np.testing.assert_array_equal(run.recommender.model.V, plain.recommender.model.V)


def test_nothing_is_followed_where_the_order_is_chance_or_unknown() -> None:
    ratings = walks()
    assert ratings.timestamps is not None
    mixed = replace(ratings, timestamps=np.random.default_rng(1).permutation(ratings.timestamps))
    unknown = replace(ratings, timestamps=None, order=None)
    assert [fr.train(one, None, CONFIG).recommender.model.decay for one in (mixed, unknown)] == [0, 0]


def test_random_splits_are_judged_without_order() -> None:
    training, test = fr.split(walks(), 0)
    followed, plain = (fr.train(training, test, one) for one in (CONFIG, assign(CONFIG, ["model.recency=0"])))
    assert followed.recommender.model.decay > 0
    assert followed.ranking == plain.ranking
    assert fr.evaluate(followed, training, test)["ndcg@10"] == pytest.approx(plain.ranking["ndcg@10"])
    assert not comes_after(training, test)


def test_evaluating_a_saved_run_on_last_ratings_follows_too(run: fr.Run, tmp_path: Path) -> None:
    training, test = fr.split(walks(), how="last:1")
    run.recommender.save(tmp_path)
    loaded = Recommender.load(tmp_path)
    assert fr.evaluate(loaded, training, test)["ndcg@10"] == pytest.approx(run.ranking["ndcg@10"])
    assert loaded.client(3).top_items() == run.recommender.client(3).top_items()


def test_lists_are_of_the_latest_group_and_so_are_their_reasons(run: fr.Run) -> None:
    followed, any_time, reasons = 0, 0, 0
    for person in map(run.recommender.client, range(PEOPLE)):
        assert person.ages is not None
        latest = int(person.items[np.argmin(person.ages)])
        best = person.top_items(4, why=True)
        followed += in_group(named(best), latest)
        reasons += sum(in_group([one.because[0].item], latest) for one in best)
        any_time += in_group(named(person.top_items(4, any_time=True)), latest)
    assert followed > any_time + PEOPLE / 2
    assert reasons > 2 * PEOPLE, "most of four"


def test_moments(run: fr.Run) -> None:
    person = run.recommender.client(3)
    other = next(g for g in range(GROUPS) if g not in person.items // OF_GROUP) * OF_GROUP
    for moment in ({"after": other}, {"session": (other + 1, other)}):
        items = named(person.top_items(4, **moment))
        assert in_group(items, other) > in_group(named(person.top_items(4)), other)
        assert other not in items
    with pytest.raises(UserError, match="follow no choices"):
        ListOptions(by="rating", after=other)


@pytest.mark.parametrize(("name", "why"), [("fedmf", "learns from ratings"), ("biases", "lists what is popular")])
def test_models_that_follow_no_moment_say_so(name: str, why: str) -> None:
    model = fr.train(walks(), None, assign(preset(name), ["server.rounds=1"])).recommender
    for moment in ({"after": 4}, {"session": (5, 4)}):
        with pytest.raises(UserError, match=f"{why}.* it follows no session"):
            model.recommend(3, **moment)


@pytest.mark.parametrize("rule", ["ials", "joint", "fcf"])
def test_shares_add_up_to_what_ranks(run: fr.Run, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ials.Settings, "popular_choices", 0.0)
    model = assign(CONFIG, [f"model.rule={rule}", *(["model.popularity_weight=0"] if rule != "fcf" else [])]).model
    public, rng = run.recommender.model.public, np.random.default_rng(0)
    X = model.item_columns(rng.normal(size=model.start_items(0, GROUPS * OF_GROUP, public).shape), public)
    items, ratings = rng.permutation(20), rng.integers(1, 6, 20).astype(np.float64)
    recency = recency_weights(np.arange(20), 3.0)
    assert recency is not None
    z = model.list_weights(model.fold_in(X, items, ratings, public), X, items, ratings, public, recency)
    shares = model.list_weight_shares(X, items, ratings, public, recency)
    np.testing.assert_allclose(shares.sum(axis=0), z, atol=1e-12)


def test_a_newcomer_s_latest_rating_is_the_last(run: fr.Run) -> None:
    first, second = 0, 3 * OF_GROUP
    forth = {first + k: 4 for k in range(4)} | {second + k: 4 for k in range(4)}
    back = dict(reversed(forth.items()))
    latest = [run.recommender.fold_in(one).top_items(1)[0].item // OF_GROUP for one in (forth, back)]
    assert latest == [3, 0]


def test_the_command_knows_moments(run: fr.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.recommender.save(tmp_path)
    lists = {}
    for options in ("", "--any-time", "--after 0", "--session 27,28"):
        out = tmp_path / "list.json"
        assert exit_code_of(["recommend", str(tmp_path), "--client", "3", "--json", str(out), *options.split()]) == 0
        lists[options] = tuple(row["item"] for row in json.loads(out.read_text()))
    assert len(set(lists.values())) == 4
    assert in_group(list(lists["--after 0"]), 0) > in_group(list(lists[""]), 0)
    assert in_group(list(lists["--session 27,28"]), 27) > in_group(list(lists[""]), 27)
    assert exit_code_of(["recommend", str(tmp_path), "--client", "3", "--session", "nothing"]) != 0


def test_what_is_chosen_long_after_is_judged_without_order(run: fr.Run) -> None:
    decay = run.recommender.model.decay
    few, many = (fr.split(walks(), how=f"last:{count}") for count in (1, int(decay) + 1))
    assert asks_what_is_next(*few, decay)
    assert comes_after(*many)
    assert not asks_what_is_next(*many, decay)
    plain = fr.evaluate(fr.train(many[0], None, assign(CONFIG, ["model.recency=0"])), *many)
    assert fr.evaluate(fr.train(many[0], None, CONFIG), *many)["ndcg@10"] == plain["ndcg@10"]
