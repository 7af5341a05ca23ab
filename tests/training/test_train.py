"""One training: the same seed gives the same numbers, traffic is counted, divergence is caught."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import assign, load_config, preset
from fedrecplus.data import split
from fedrecplus.errors import UserError
from fedrecplus.training import Recommender, RunFolder, Step, train
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=40)
TRAINING, TEST = split(RATINGS, 0)
SHORT = ["server.rounds=6", "evaluation.every=2"]


def test_a_run_folder_holds_config_metrics_result_and_model(tmp_path: Path) -> None:
    config = assign(preset("fedrec"), SHORT)
    run = train(TRAINING, TEST, config, out=tmp_path / "run", fold=0)
    names = {file.name for file in (tmp_path / "run").iterdir()}
    files = {"config.toml", "data.json", "metrics.jsonl", "result.json", "model.safetensors", "clients.safetensors"}
    assert names == files
    assert load_config(tmp_path / "run" / "config.toml") == config
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result == run.result
    assert [line["round"] for line in RunFolder(tmp_path / "run").metrics()] == [1, 2, 4, 6]
    assert RunFolder(tmp_path / "run").metrics()[-1]["rmse"] == run.rmse


def test_the_model_that_may_be_shared_holds_nothing_of_a_client(tmp_path: Path) -> None:
    train(TRAINING, TEST, assign(preset("fedmf"), SHORT), out=tmp_path)
    from safetensors import safe_open

    with safe_open(tmp_path / "model.safetensors", framework="numpy") as file:
        assert set(file.keys()) == {"V", "popularity", "average", "content", "years", "item_ids", "titles"}
    assert (tmp_path / "clients.safetensors").stat().st_mode & 0o077 == 0


def test_central_training_sends_nothing_and_learns() -> None:
    run = train(TRAINING, TEST, assign(preset("pmf"), ["server.rounds=30"]))
    assert run.result["bytes_up_per_client_round"] == run.result["bytes_down_per_client_round"] == 0
    fit = train(RATINGS, None, assign(preset("pmf"), ["server.rounds=30"])).result["fit"]
    assert fit["rmse"] < RATINGS.values.std()


@pytest.mark.parametrize("model", ["mf", "biased-mf"])
def test_central_training_moves_only_what_is_trained(model: str) -> None:
    run = train(TRAINING, TEST, assign(preset("pmf"), [f"model.rule={model}", "server.rounds=3"]))
    W = run.recommender.clients.W
    assert (W[:, -1] != 0).any() == (model == "biased-mf")
    if model == "biased-mf":
        np.testing.assert_array_equal(W[:, -2], 1.0)


def test_divergence_is_said_and_retried_smaller(tmp_path: Path) -> None:
    heard: list[Step] = []
    config = assign(preset("fedrec"), [*SHORT, "model.learning_rate=8", "server.rounds=40"])
    run = train(TRAINING, TEST, config, progress=heard.append, out=tmp_path)
    messages = [step.message for step in heard if step.message]
    assert run.result["retries"] == len(messages) >= 1
    assert "diverged in round" in messages[0]
    assert "model.learning_rate = 4" in messages[0]
    assert run.result["learning_rate"] == 8 * 0.5 ** len(messages)
    assert run.result["config"]["model"]["learning_rate"] == 8
    rounds = [line["round"] for line in RunFolder(tmp_path).metrics()]
    assert rounds == sorted(set(rounds))


def test_without_test_ratings_errors_are_those_of_training(tmp_path: Path) -> None:
    run = train(RATINGS, None, assign(preset("fedmf"), SHORT), out=tmp_path)
    assert run.result["rmse"] is None
    assert 0 < run.result["fit"]["rmse"] < 2
    assert Recommender.load(tmp_path).top_items(0, 3)


def test_nothing_to_train_on_is_an_error() -> None:
    with pytest.raises(UserError, match="no rating to train on"):
        train(RATINGS.where(np.zeros(len(RATINGS), bool)), None, "fedmf")
