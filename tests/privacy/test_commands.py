"""``train --epsilon`` and ``privacy RUN``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from tests.cli.conftest import here

__all__ = ["here"]
TRAIN = ["train", "--dataset", "ratings.csv", "--algorithm", "fedmf", "--out", "run"]


def test_train_with_a_budget_and_what_it_spent(capsys: pytest.CaptureFixture[str]) -> None:
    budget = ["--epsilon", "4", "--delta", "1e-4", "--set", "server.rounds=2"]
    assert exit_code_of([*TRAIN, *budget]) == 2
    assert "--catalogue FILE" in capsys.readouterr().err
    assert exit_code_of([*TRAIN, *budget, "--catalogue", "items.csv", "--scale", "1:5:1"]) == 0
    said = capsys.readouterr().out
    assert "per user" in said
    assert "tuning" in said
    assert exit_code_of(["privacy", "run", "--json", "spent.json"]) == 0
    said = capsys.readouterr().out
    assert "round 2" in said
    assert "joint differential privacy" in said
    figures = json.loads(Path("spent.json").read_text())
    assert figures["epsilon"] == pytest.approx(json.loads(Path("run/result.json").read_text())["privacy"]["epsilon"])
    assert 3.9 < figures["epsilon"] <= 4.0
    assert figures["finished"]


def test_local_noise_says_what_a_whole_person_costs(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--epsilon", "5", "--noise", "local", "--set", "server.rounds=2", "--set", "model.factors=2"]
    assert exit_code_of([*TRAIN, *more]) == 2
    assert "--seeded-noise" in capsys.readouterr().err
    more += ["--seeded-noise"]
    assert exit_code_of([*TRAIN, *more]) == 0
    privacy = json.loads(Path("run/result.json").read_text())["privacy"]
    assert privacy["unit"] == "number"
    assert privacy["epsilon_of_largest_user"] >= 5 * 2 * 2


def test_a_run_without_a_budget_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*TRAIN, "--set", "server.rounds=2"]) == 0
    assert exit_code_of(["privacy", "run"]) == 0
    assert "no privacy budget" in capsys.readouterr().out


def test_a_folder_without_a_run_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["privacy", "nowhere"]) == 2
    assert "not a run's folder" in capsys.readouterr().err


def test_uploads_in_the_clear_with_a_budget_are_refused_before_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*TRAIN, "--epsilon", "4", "--channel", "clear"]) == 2
    assert "--channel=clear with --epsilon" in capsys.readouterr().err
    assert not Path("run").exists()


def test_likes_with_a_budget_are_told_what_they_get(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [(user, item) for user in range(12) for item in range(8) if (user * 3 + item) % 4]
    Path("likes.csv").write_text("user,item\n" + "".join(f"u{user},i{item}\n" for user, item in pairs))
    likes = ["train", "--dataset", "likes.csv", "--out", "run", "--set", "server.rounds=2"]
    Path("list.csv").write_text("item\n" + "".join(f"i{item}\n" for item in range(8)))
    budget = ["--epsilon", "4", "--delta", "1e-3", "--catalogue", "list.csv"]
    assert exit_code_of([*likes, "--algorithm", "fedmf", *budget]) == 0
    assert "No model for choices has a budget yet" in "".join(capsys.readouterr())
    small = ["--set", "channel.least_cohort=2"]
    assert exit_code_of([*likes, "--overwrite", "--algorithm", "fedrec+secure", *small]) == 0
    assert "learns from how ratings differ" not in "".join(capsys.readouterr())


def test_a_delta_out_of_range_is_named_by_its_own_option(capsys: pytest.CaptureFixture[str]) -> None:
    for option, budget in (("--delta", ["--epsilon", "4", "--delta", "2"]), ("--epsilon", ["--epsilon", "-1"])):
        assert exit_code_of([*TRAIN, *budget]) == 2
        assert f"error: {option}: privacy.{option[2:]}" in capsys.readouterr().err
