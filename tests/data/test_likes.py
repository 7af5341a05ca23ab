"""Likes, clicks and purchases: files without ratings, and what training makes of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data import FileOptions, load
from fedrecplus.errors import UserError
from tests.small_data import small_ratings

Write = Callable[..., str]
PAIRS = [("1", "7"), ("1", "9"), ("2", "7"), ("3", "8")]


def cells(ratings: fr.Ratings) -> list[tuple[str, str]]:
    clients = ratings.client_ids[ratings.client_of_rating]
    return [(str(c), str(i)) for c, i in zip(clients, ratings.item_ids[ratings.items], strict=True)]


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("user,item\n{}", {}),
        ("{}", {}),
        ("userId\tmovieId\ttimestamp\n{t}", {}),
        ("item,user\n{r}", {}),
        ("customer_id,product_id,colour\n{x}", {"rating": "none"}),
        ("{t}", {"rating": "none"}),
        ("{o}", {}),
    ],
)
def test_a_file_without_ratings_is_read_as_interactions(write: Write, form: str, options: dict[str, str]) -> None:
    plain = "".join(f"{user},{item}\n" for user, item in PAIRS)
    text = form.format(
        plain,
        t="".join(f"{user}\t{item}\t88{user}\n" for user, item in PAIRS),
        r="".join(f"{item},{user}\n" for user, item in PAIRS),
        x="".join(f"{user},{item},red\n" for user, item in PAIRS),
        o="".join(f"{user},{item},1\n" for user, item in PAIRS),
    )
    found = load(write(text), options=FileOptions(**options))
    assert cells(found) == PAIRS
    assert found.likes_alone
    assert str(found.scale) == "0:1:1"
    assert found.values.tolist() == [1.0] * 4


def test_parquet_without_ratings_and_repeated_clicks(write: Write) -> None:
    file = io.BytesIO()
    pl.DataFrame({"user": [1, 1, 2, 1], "item": [7, 9, 7, 7]}).write_parquet(file)
    assert cells(load(write(file.getvalue(), "clicks.parquet"))) == [("1", "7"), ("1", "9"), ("2", "7")]


def test_ratings_that_happen_to_be_few_are_no_likes(write: Write) -> None:
    assert not load(write("user,item,rating\n1,1,5\n2,2,3\n")).likes_alone
    with pytest.raises(UserError, match="usual name for the rating") as caught:
        load(write("user,item,opinion\n1,1,5\n2,2,3\n"))
    assert "--rating-column=none" in caught.value.remedy


@pytest.fixture
def likes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    ratings = small_ratings(clients=40)
    lines = [f"{client},{item}\n" for client, item in zip(ratings.client_of_rating, ratings.items, strict=True)]
    Path("likes.csv").write_text("user,item\n" + "".join(lines))
    return "likes.csv"


@pytest.mark.parametrize("preset", ["fedmf", "fedrec", "fedrec++", "fedrec+", "pmf", "fedmf-vanilla"])
def test_every_kind_of_model_takes_them_and_claims_no_error(likes: str, preset: str) -> None:
    training, test = fr.split(fr.load(likes), 0)
    run = fr.train(training, test, fr.assign(fr.preset(preset), ["server.rounds=6", "evaluation.every=2"]), out="run")
    assert (run.result["mae"], run.result["rmse"], run.result["nmse"]) == (None, None, None)
    assert run.result["groups"]["few_ratings"]["rmse"] is None
    assert np.isfinite(run.ranking["ndcg@10"])
    lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert [line["rmse"] for line in lines] == [None] * 4  # after rounds 1, 2, 4 and 6
    assert len(run.recommender.recommend(training.client_ids[0], 5, why=True, explore=0.3)) == 5
    with pytest.raises(UserError, match="all its ratings are the same"):
        _ = run.rmse


def test_commands_say_that_lists_count(likes: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    train = ["train", "--dataset", likes, "--algorithm", "fedmf", "--set", "server.rounds=3", "--out", "run"]
    assert exit_code_of(train) == 0
    told = capsys.readouterr()
    assert "likes alone" in told.out
    assert "no ratings, which say who chose what" in told.err
    assert exit_code_of(["recommend", "run", "--client", "3", "--explore", "0.5"]) == 0
    told = capsys.readouterr()
    assert "predicted rating" not in told.out
    assert "likes of an item" in told.out
    tune = ["tune", "--dataset", likes, "--algorithm", "fedmf", "--set", "server.rounds=2", "--trials", "1"]
    assert exit_code_of([*tune, "--workers", "1", "--search", "model.factors=2..4"]) == 0
    assert "settings are chosen by ndcg@10" in capsys.readouterr().out
    compare = ["compare", "--dataset", likes, "--algorithm", "fedmf,popularity", "--folds", "2", "--details"]
    assert exit_code_of([*compare, "--set", "server.rounds=2", "--json", "c.json", "--csv", "c.csv"]) == 0
    told = capsys.readouterr()
    assert "–" in told.out
    assert "RMSE of" not in told.out
    assert "NDCG@10 is what counts, and p is of it" in told.err
    found = json.loads(Path("c.json").read_text())
    assert all(row["rmse"] is None and row["ranking"]["ndcg@10"] is not None for row in found["rows"])
    by_name = {row["algorithm"]: row["ranking"]["ndcg@10"]["mean"] for row in found["summary"]}
    assert by_name["popularity"] == by_name["global-mean"]
    assert exit_code_of(["report", "run", "c.json"]) == 0
    assert exit_code_of(["report", likes]) == 2
    assert "is not a JSON file: it begins with 'user,item'" in capsys.readouterr().err
