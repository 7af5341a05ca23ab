"""Protocols of other people's papers: marked tests, lists of test pairs, the last rating of each person."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data.joining import concatenate, join
from fedrecplus.data.load import load
from fedrecplus.data.ratings import NEVER_TESTED
from fedrecplus.errors import UserError
from fedrecplus.training.evaluation import Fallback, Predictor
from fedrecplus.training.sampled import drawn_negatives, sampled_ranking
from tests.small_data import small_ratings

LINES = ["user,item,rating,timestamp,test", "1,9,4,7,0", "1,3,5,7,1", "1,5,3,6,0", "2,3,2,1,1", "2,9,1,1,0"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_a_column_marks_what_is_tested_on(file: Path) -> None:
    ratings = load(file, options=fr.FileOptions(test="test"))
    training, test = fr.split(ratings, how="column")
    assert test.to_frame()["item"].to_list() == [3, 3]
    assert len(training) == 3
    file.write_text(file.read_text().replace(",1\n", ",0\n"))
    with pytest.raises(UserError, match="no rating is marked"):
        load(file, options=fr.FileOptions(test="test"))


def test_of_two_ratings_at_one_time_the_one_further_down_is_the_last(file: Path) -> None:
    _, test = fr.split(load(file), how="last:1")
    assert test.to_frame().select("user", "item").rows() == [(1, 3), (2, 9)]


def test_pairs_of_the_ratings_themselves_are_held_out_of_them(file: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "test.csv"
    pairs.write_text("user,item\n1,9\n2,3\n")
    ratings = load(file)
    both = concatenate(ratings, load(pairs, like=ratings))
    assert (len(both), int((both.folds != NEVER_TESTED).sum())) == (5, 2)
    _, test = fr.split(both, how="column")
    assert test.values.tolist() == [4.0, 2.0]


def test_pairs_without_ratings_are_no_test_of_ratings(file: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "test.csv"
    pairs.write_text("user,item\n1,9\n2,8\n")
    ratings = load(file)
    with pytest.raises(UserError, match=r"test\.csv has no ratings, only"):
        concatenate(ratings, load(pairs, like=ratings))
    with pytest.raises(UserError, match="has no ratings, only"):
        join(ratings, load(pairs, like=ratings))
    model = fr.FedRec("fedmf", server__rounds=1).fit(ratings)
    with pytest.raises(UserError, match="has no ratings, only"):
        model.score(pl.read_csv(pairs))


def test_sampled_ranks_are_those_of_counting() -> None:
    training, test = fr.split(small_ratings(clients=30), how="user")
    rng = np.random.default_rng(0)
    predictor, fallback = Predictor(rng.normal(size=(30, 4)), rng.normal(size=(40, 4))), Fallback.of(training)
    fallback, everybody = fallback.knowing_everything(), np.flatnonzero(np.diff(test.indptr) > 0)
    negatives = drawn_negatives(training, test, 12, 5, everybody)
    hits, gains = [], []
    for row, client in enumerate(everybody.tolist()):
        own = set(training.of(client)[0].tolist()) | set(test.of(client)[0].tolist())
        drawn = [item for item in negatives[row].tolist() if item >= 0]
        assert not own & set(drawn)
        assert len(set(drawn)) == len(drawn) == min(12, 40 - len(own))
        scores = predictor.of_all_items(np.array([client]))[0]
        for item in test.of(client)[0].tolist():
            rank = sum(scores[other] > scores[item] for other in drawn)
            hits.append(rank < 10)
            gains.append(1 / np.log2(rank + 2) if rank < 10 else 0.0)
    figures = sampled_ranking(training, test, predictor, fallback, 12, 5)
    assert figures == {"sampled_hr@10": pytest.approx(np.mean(hits)), "sampled_ndcg@10": pytest.approx(np.mean(gains))}


def test_train_says_both_rankings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = "synthetic:clients=40,items=60,ratings_per_client=10"
    command = ["train", "--dataset", data, "--algorithm", "fedmf", "--negatives", "20", "--set", "server.rounds=2"]
    assert exit_code_of([*command, "--out", str(tmp_path / "run")]) == 0
    assert "among 20 drawn ones: HR@10" in capsys.readouterr().out
