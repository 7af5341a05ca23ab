"""Rounds for what comes next, which a training adds by itself where they are of use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.audit.audit import with_all_rounds
from fedrecplus.config import assign, preset
from fedrecplus.parts.model.sequence import Sequence
from fedrecplus.training import Callback, continued
from fedrecplus.web.page.build import computable

ITEMS, PEOPLE, WALKS, LONG = 90, 150, 3, 6
CONFIG = assign(preset("fedrec+secure"), ["server.rounds=10", "model.factors=4", "model.interaction_factors=8"])
ADDED = 3


def chains(seed: int = 0) -> fr.Ratings:
    """People who choose one item after its neighbour, for a while, and then begin elsewhere."""
    rng, rows = np.random.default_rng(seed), []
    for user in range(PEOPLE):
        walks = (np.arange(first, first + LONG) % ITEMS for first in rng.choice(ITEMS // LONG, WALKS, False) * LONG)
        items = np.concatenate([walk + rng.integers(LONG) for walk in walks]) % ITEMS
        _, first = np.unique(items, return_index=True)
        rows += [(user, int(items[k]), int(rng.integers(3, 6)), int(k)) for k in np.sort(first)]
    return fr.load(pl.DataFrame(rows, schema=["user", "item", "rating", "timestamp"], orient="row"))


@pytest.fixture(scope="module")
def run() -> fr.Run:
    training, test = fr.split(chains(), how="last:1")
    return fr.train(training, test, CONFIG)


def without(*changes: str) -> fr.Run:
    training, test = fr.split(chains(), how="last:1")
    return fr.train(training, test, assign(CONFIG, list(changes)))


def test_a_training_goes_on_with_what_is_chosen_soon_after_what(run: fr.Run) -> None:
    plain = without(f"model.recency={run.result['recency']}")
    assert (run.result["model"], plain.result["model"]) == ("sequence", "joint")
    assert run.result["rounds"] == plain.result["rounds"] + ADDED
    assert run.ranking["ndcg@10"] > plain.ranking["ndcg@10"] + 0.05
    assert run.rmse == pytest.approx(plain.rmse, abs=1e-9), "ratings are predicted as without"
    V = run.recommender.model.V
    np.testing.assert_array_equal(V[:, : V.shape[1] // 2], plain.recommender.model.V)
    assert run.result["bytes_up_per_client_round"] <= plain.result["bytes_up_per_client_round"]


def test_lists_without_order_are_those_without_the_table(run: fr.Run) -> None:
    plain, any_time = without("model.recency=0"), run.recommender
    for person in range(0, PEOPLE, 10):
        mine, others = (one.client(person).top_items(5, any_time=True) for one in (any_time, plain.recommender))
        assert [one.item for one in mine] == [one.item for one in others]


class Enough(Callback):
    """Ends a training after its first round of the table."""

    def __init__(self) -> None:
        self.done = 0

    def round(self, number: int, last: int) -> None:
        """Another one."""
        self.done = number

    def wants_stop(self) -> bool:
        """Whether there is one of the table."""
        return self.done > CONFIG.server.rounds


def test_a_table_that_was_not_found_of_use_leaves_no_trace() -> None:
    plain, training = without("model.recency=0"), fr.split(chains(), how="last:1")[0]
    ended = fr.train(training, None, CONFIG, callbacks=[Enough()])
    assert (ended.result["model"], ended.result["rounds"]) == ("joint", 11)
    model = ended.recommender.model
    assert model.decay > 0
    np.testing.assert_array_equal(model.V, plain.recommender.model.V)


def test_a_training_stopped_among_the_added_rounds_comes_to_the_same(run: fr.Run, tmp_path: Path) -> None:
    training, test = fr.split(chains(), how="last:1")
    looks = iter([False] * 10 + [True] * 5)
    with pytest.raises(KeyboardInterrupt):
        fr.train(training, test, CONFIG, out=tmp_path / "run", stop=lambda: next(looks))
    again = fr.train(training, test, CONFIG, out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.recommender.model.V, run.recommender.model.V)
    assert again.ranking == run.ranking
    loaded = fr.Recommender.load(tmp_path / "run")
    assert loaded.client(3).top_items() == run.recommender.client(3).top_items()


def test_going_on_goes_on_with_the_table_too(run: fr.Run) -> None:
    training, _ = fr.split(chains(), how="last:1")
    config = continued(run.recommender.model, CONFIG)
    assert isinstance(config.model, Sequence)
    assert config.server.rounds == 4
    later = fr.train(training, None, config, start=run)
    half = run.recommender.model.V.shape[1] // 2
    before, after = (one.recommender.model.V[:, half:] for one in (run, later))
    angles = np.linalg.svd(np.linalg.qr(before)[0].T @ np.linalg.qr(after)[0])[1]
    assert angles[:4].min() > 0.9
    anew = fr.train(training, None, assign(CONFIG, ["model.recency=3"]), start=run)
    assert anew.recommender.model.V.shape[1] == half


def test_the_page_has_the_model_without_the_table(run: fr.Run) -> None:
    whole = run.recommender.model
    shown = computable(whole)
    assert shown.config.model.rule == "joint"
    assert shown.config.server.rounds == CONFIG.server.rounds
    items, ratings = np.arange(5), np.array([5.0, 4.0, 3.0, 4.0, 2.0])
    scores = [model.scores(model.fold_in(items, ratings)) for model in (whole, shown)]
    np.testing.assert_allclose(*scores, atol=1e-9)
    assert (
        run.recommender.similar_items(3, 5)["item"]
        == without("model.recency=0").recommender.similar_items(3, 5)["item"]
    )


def test_an_audit_counts_on_the_added_rounds_where_order_is_known() -> None:
    known = chains()
    assert with_all_rounds(CONFIG, known).server.rounds == 10 + ADDED
    assert with_all_rounds(CONFIG, replace(known, timestamps=None, order=None)) is CONFIG
    told = assign(CONFIG, ["model.recency=3"])
    assert with_all_rounds(told, known) is told
