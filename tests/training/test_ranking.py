"""Ranking measures against counting by hand; ties, short catalogues, clients without relevant items, groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import fedrecplus as fr
from fedrecplus.data import Ratings, Scale, split
from fedrecplus.errors import UserError
from fedrecplus.training import Fallback, Predictor, ranking
from fedrecplus.training.model_files import PrivateParts
from fedrecplus.training.ranking import lists_of, measure_named, rank, top, top_lists
from tests.small_data import small_ratings

STARS = Scale(1, 5, 1)


def ratings_of(cells: dict[tuple[int, int], float], clients: int, items: int, scale: Scale = STARS) -> Ratings:
    """Ratings from (client, item) → rating."""
    pairs = sorted(cells)
    counts = np.bincount([client for client, _ in pairs], minlength=clients)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    codes = scale.codes(np.array([cells[pair] for pair in pairs], dtype=float))
    numbers = np.array([item for _, item in pairs], np.uint16)
    return Ratings("tiny", scale, indptr, numbers, codes, np.arange(clients), np.arange(items))


def by_hand(order: list[int], relevant: set[int], k: int) -> dict[str, float]:
    """Every measure of one list, place by place."""
    hits = [item in relevant for item in order[:k]]
    ideal = sum(1 / np.log2(place + 2) for place in range(min(len(relevant), k)))
    precisions = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
    return {
        "ndcg": sum(hit / np.log2(place + 2) for place, hit in enumerate(hits)) / ideal,
        "recall": sum(hits) / len(relevant),
        "precision": sum(hits) / k,
        "hr": float(any(hits)),
        "map": sum(precisions) / min(len(relevant), k),
        "mrr": 1 / (hits.index(True) + 1) if any(hits) else 0.0,
    }


@st.composite
def problems(draw: st.DrawFn) -> tuple[Ratings, Ratings, Predictor, tuple[int, ...]]:
    """Few clients and items, scores with many ties, lists longer than the catalogue among the lengths."""
    clients, items = draw(st.integers(1, 5)), draw(st.integers(2, 7))
    pairs = [(client, item) for client in range(clients) for item in range(items)]
    sides = draw(st.lists(st.sampled_from(["train", "test", "none"]), min_size=len(pairs), max_size=len(pairs)))
    stars = draw(st.lists(st.integers(1, 5), min_size=len(pairs), max_size=len(pairs)))
    cells = list(zip(pairs, sides, stars, strict=True))
    scores = draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    parts = [{pair: float(star) for pair, side, star in cells if side == part} for part in ("train", "test")]
    predictor = Predictor(np.array(scores, float).reshape(clients, items), np.eye(items))
    lengths = draw(st.sets(st.integers(1, 9), min_size=1, max_size=3))
    return ratings_of(parts[0], clients, items), ratings_of(parts[1], clients, items), predictor, tuple(lengths)


@given(problems())
def test_every_measure_is_what_counting_by_hand_gives(problem: tuple[Ratings, Ratings, Predictor, Any]) -> None:
    training, test, predictor, lengths = problem
    fallback, popularity = Fallback.of(training), training.item_counts()
    likes_alone = training.likes_alone and test.likes_alone
    found, shown = {}, {k: set() for k in lengths}
    left_out = 0
    for client in range(test.clients):
        items, stars = test.of(client)
        relevant = set(items[(stars >= 4) | likes_alone].tolist())
        if not relevant:
            left_out += len(items) > 0
            continue
        score = predictor.of_all_items(np.array([client]))[0]
        score[~fallback.known_item] = fallback.client_mean[client]
        if not fallback.known_client[client]:
            score = popularity.astype(float)
        open_items = set(range(test.item_count)) - set(training.of(client)[0].tolist())
        order = sorted(open_items, key=lambda item: (-score[item], -popularity[item], item))
        for k in lengths:
            found.setdefault(k, []).append(by_hand(order, relevant, k))
            shown[k] |= set(order[:k])
    figures = rank(training, test, predictor, fallback, lengths)
    assert figures["left_out"] == left_out
    for k in lengths:
        rows = found.get(k, [])
        assert figures["clients"] == len(rows)
        for name in ranking.MEASURES:
            expected = pytest.approx(np.mean([row[name] for row in rows])) if rows else None
            assert figures[f"{name}@{k}"] == expected
        assert figures[f"coverage@{k}"] == pytest.approx(len(shown[k]) / test.item_count)


def test_of_equals_the_more_popular_comes_first_then_the_first() -> None:
    scores, popularity = np.array([1.0, 2.0, 2.0, 2.0, -np.inf]), np.array([9, 1, 5, 5, 99])
    assert top(scores, popularity, 3).tolist() == [2, 3, 1]
    assert top(scores, popularity, 9).tolist() == [2, 3, 1, 0]
    assert top_lists(np.stack([scores, np.full(5, -np.inf)]), popularity, 2).tolist() == [[2, 3], [-1, -1]]


def test_a_perfect_ranking_has_an_ndcg_of_one_and_the_worst_of_zero() -> None:
    training = ratings_of({(0, 0): 5.0}, 1, 30)
    test = ratings_of({(0, 3): 5.0, (0, 4): 4.0, (0, 5): 2.0}, 1, 30)
    fallback = Fallback.of(training).knowing_everything()
    best, worst = np.zeros((1, 30)), np.zeros((1, 30))
    best[0, [3, 4]], worst[0, [3, 4]] = 1.0, -1.0
    good, bad = (rank(training, test, Predictor(W, np.eye(30)), fallback) for W in (best, worst))
    assert (good["ndcg@10"], good["map@10"], good["mrr@10"], good["precision@5"]) == (1.0, 1.0, 1.0, 0.4)
    assert (bad["ndcg@20"], bad["hr@20"]) == (0.0, 0.0)


TRAINING, TEST = split(small_ratings(clients=40), 1)
W, Z, X = np.random.default_rng(0).normal(size=(3, 40, 3))
MADE_UP = Predictor(W, X)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rank(TRAINING, TEST, MADE_UP, Fallback.of(TRAINING))
    monkeypatch.setattr(ranking, "_CELLS", 100)
    in_blocks = rank(TRAINING, TEST, MADE_UP, Fallback.of(TRAINING))
    assert in_blocks.pop("groups")["tail_items"] == pytest.approx(whole.pop("groups")["tail_items"])
    assert in_blocks == pytest.approx(whole)


def test_weights_for_lists_rank_where_there_are_any() -> None:
    known = Fallback.of(TRAINING).knowing_everything()
    assert rank(TRAINING, TEST, Predictor(W, X, Z), known) == rank(TRAINING, TEST, Predictor(Z, X), known)


def test_few_and_many_raters_and_tail_items_are_groups() -> None:
    found, lists = (judged(TRAINING, TEST, MADE_UP, Fallback.of(TRAINING)) for judged in (rank, lists_of))
    rated = np.diff(TRAINING.indptr)[lists.clients]
    few = rated <= np.quantile(rated, 0.25)
    assert found["groups"]["few_ratings"]["clients"] == few.sum()
    assert found["groups"]["few_ratings"]["ndcg@10"] == pytest.approx(lists.by_client["ndcg@10"][few].mean())
    assert found["groups"]["many_ratings"]["clients"] > 0
    assert 0 < found["groups"]["tail_items"]["clients"] < found["clients"]
    assert 0 < found["popularity@10"] < 1


def test_what_came_soon_and_what_came_later_are_groups_where_all_of_it_came_after() -> None:
    ratings = small_ratings(clients=40)
    dated = replace(ratings, timestamps=np.random.default_rng(4).permutation(len(ratings)))
    rng = np.random.default_rng(0)
    W, X = rng.normal(size=(40, 3)), rng.normal(size=(ratings.item_count, 3))
    training, test = split(dated, how="last:1")
    judged = (training, test, Predictor(W, X), Fallback.of(training))
    lists, groups = lists_of(*judged, relevant_from=1.0), rank(*judged, relevant_from=1.0)["groups"]
    assert training.timestamps is not None
    assert test.timestamps is not None
    last = [training.timestamps[training.client_of_rating == client].max() for client in lists.clients]
    waits = test.timestamps[np.searchsorted(test.client_of_rating, lists.clients)] - last
    soon = waits <= np.median(waits)
    assert groups["soon"]["clients"] == soon.sum()
    assert groups["soon"]["ndcg@20"] == pytest.approx(lists.by_client["ndcg@20"][soon].mean())
    assert groups["later"]["ndcg@20"] == pytest.approx(lists.by_client["ndcg@20"][~soon].mean())
    among = split(dated, 1)
    assert "soon" not in rank(*among, Predictor(W, X), Fallback.of(among[0]))["groups"]


def test_of_likes_alone_every_test_item_is_relevant() -> None:
    likes = small_ratings(clients=40)
    likes = replace(likes, codes=np.zeros_like(likes.codes))
    training, test = split(likes, 1)
    predictor = Predictor(np.ones((40, 1)), np.ones((40, 1)))
    found = rank(training, test, predictor, Fallback.of(training))
    assert (found["left_out"], found["relevant_from"]) == (0, None)
    assert found["clients"] == (np.diff(test.indptr) > 0).sum()


def test_lists_of_no_length_and_unknown_measures_are_errors() -> None:
    training, test = split(small_ratings(clients=10), 1)
    predictor = Predictor(np.ones((10, 1)), np.ones((40, 1)))
    for at in ((), (0, 5)):
        with pytest.raises(UserError, match="can't be judged"):
            rank(training, test, predictor, Fallback.of(training), at)
    assert measure_named("map@7") == ("map", 7)
    for name in ("auc@10", "ndcg", "ndcg@0", "ndcg@ten"):
        with pytest.raises(UserError, match="no ranking measure"):
            measure_named(name)


def test_evaluate_gives_what_the_run_says_and_any_list_length() -> None:
    run = fr.train(TRAINING, TEST, fr.assign(fr.preset("fedmf"), ["server.rounds=3"]))
    found = fr.evaluate(run, TRAINING, TEST)
    assert found.rmse == pytest.approx(run.rmse)
    assert {name: found[name] for name in ("ndcg@5", "map@10", "coverage@20")} == pytest.approx(
        {name: run.ranking[name] for name in ("ndcg@5", "map@10", "coverage@20")}
    )
    short = fr.evaluate(run.recommender, TRAINING, TEST, at=(1, 3), relevant_from=3)
    assert short["ndcg@3"] > 0
    assert "ndcg@10" not in short.ranking
    assert short.ranking["clients"] > found.ranking["clients"]


@pytest.mark.parametrize("model", ["reconstruction", "tests.training.list_model"])
def test_evaluate_folds_in_people_that_the_model_has_no_weights_of(model: str) -> None:
    config = fr.assign(fr.preset("fedmf"), ["server.rounds=3", f"model.rule={model}"])
    recommender = fr.train(TRAINING, TEST, config).recommender
    nobody = np.zeros(0, dtype=np.int64)
    deployed = replace(recommender, clients=PrivateParts(nobody, nobody, nobody, nobody, nobody))
    whole, folded_in = (fr.evaluate(one, TRAINING, TEST) for one in (recommender, deployed))
    assert folded_in.rmse == pytest.approx(whole.rmse, rel=1e-4)
    assert folded_in["ndcg@10"] == pytest.approx(whole["ndcg@10"], rel=1e-2)


def test_evaluate_matches_clients_and_items_by_id() -> None:
    run = fr.train(TRAINING, TEST, fr.assign(fr.preset("fedmf"), ["server.rounds=3"]))
    clients, items = np.random.default_rng(0).permutation(40), np.random.default_rng(1).permutation(40)

    def shuffled(one: Ratings) -> Ratings:
        cells = zip(one.client_of_rating, one.items, one.values, strict=True)
        renumbered = {(int(clients[c]), int(items[i])): float(r) for c, i, r in cells}
        there = ratings_of(renumbered, 40, 40)
        return replace(there, client_ids=np.argsort(clients), item_ids=np.argsort(items))

    again = fr.evaluate(run, shuffled(TRAINING), shuffled(TEST))
    assert again.rmse == pytest.approx(run.rmse)
    assert again["recall@20"] == pytest.approx(run.ranking["recall@20"])
