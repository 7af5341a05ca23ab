"""``fedrecplus tune``: what it prints and writes, what it refuses, and a real kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import load_config, preset, to_tables
from tests.cli.refusing import refused

pytest.importorskip("optuna")

TUNE = ["tune", "--dataset", "ratings.csv", "--algorithm", "fedmf"]
# plain server steps, so that few trials are pruned
SHORT = [*TUNE, "--set", "server.rounds=6", "--set", "evaluation.every=2", "--set", "server_optimizer.rule=sgd"]
ALONE = ["--workers", "1"]
SEARCH = ["--search", "model.noise=0.5..2.0:log", "--search", "model.factors=2..8"]

# The signal is real, but the process sends it to itself: how far it is when another one's arrives is a matter of time.
KILLED = """
import os, signal
from fedrecplus.cli.main import run
from fedrecplus.experiments import tuning
made = tuning.Moment.__init__
def noted(self, *given, **named):
    made(self, *given, **named)
    if self.ended >= int(os.environ["TRIALS"]) and self.round > 0:
        os.kill(os.getpid(), signal.SIGKILL)
tuning.Moment.__init__ = noted
run()
"""

BAD = {
    "no data set": (["tune", "--algorithm", "fedmf"], "--dataset"),
    "no algorithm": (["tune", "--dataset", "ratings.csv"], "--algorithm"),
    "a data set twice": ([*SHORT, "--dataset", "ratings.csv"], "twice"),
    "search without choices": ([*TUNE, "--search", "model.factors"], "part.option=low..high"),
    "no trials": ([*TUNE, "--trials", "0"], "--trials"),
    "no such fold": ([*TUNE, "--fold", "5"], "no fold 5"),
    "no such share": ([*TUNE, "--share", "1"], "share of 1"),
    "no cuts": ([*TUNE, "--cuts", "0"], "--cuts"),
    "negative cut seed": ([*TUNE, "--cut-seed", "-1"], "--cut-seed"),
    "negative workers": ([*TUNE, "--workers", "-1"], "--workers"),
    "out is a folder": ([*TUNE, "--out", "."], "is a folder"),
    "study and config in one file": ([*TUNE, "--out", "one", "--storage", "one"], "same file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_said_and_nothing_is_written(case: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(*BAD[case], here, capsys)


def test_the_winner_is_printed_saved_and_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    unpruned = ["--set", "evaluation.every=6"]  # importances come of complete trials
    asked = [*SHORT, *unpruned, *SEARCH, *ALONE, "--trials", "11", "--out", "won.toml", "--json", "found.json"]
    assert exit_code_of(asked) == 0
    told = capsys.readouterr()
    found = json.loads(Path("found.json").read_text())
    winner = load_config("won.toml")
    assert to_tables(winner) == found["config"]
    assert winner.model.settings.noise == found["best"]["settings"]["model.noise"]
    assert len(found["trials"]) == 11
    assert (found["datasets"], found["fold"], found["share"], found["cut_seeds"]) == (["ratings.csv"], 0, 0.1, [0])
    assert found["search"] == [SEARCH[1], SEARCH[3]]
    assert f"{found['best']['value']:.4f}" in told.out
    assert "importance" in told.out
    assert "won.db" in told.out
    assert told.err.count("best") == 11
    assert exit_code_of(["compare", "--dataset", "ratings.csv", "--algorithm", "fedmf,won.toml", "--folds", "2"]) == 0
    assert "won " in capsys.readouterr().out
    assert exit_code_of(["train", "--dataset", "ratings.csv", "--algorithm", "won.toml", "--out", "run"]) == 0
    assert load_config("run/config.toml") == replace(winner, algorithm="won")


def test_settings_can_be_chosen_by_lists(capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SHORT, *SEARCH, *ALONE, "--trials", "2"]
    assert exit_code_of([*command, "--objective", "ndcg@10", "--json", "found.json"]) == 0
    found, told = json.loads(Path("found.json").read_text()), capsys.readouterr()
    assert found["best"]["value"] == max(trial["value"] for trial in found["trials"] if trial["value"] is not None)
    assert "NDCG@10, validation" in told.out
    assert "NDCG@10 0." in told.err
    assert exit_code_of([*command, "--objective", "mape"]) == 2
    assert "'mape' is no objective" in capsys.readouterr().err


def test_without_a_search_the_preset_s_own_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*SHORT, *ALONE, "--trials", "2"]) == 0
    assert "model.item_prior" in capsys.readouterr().out
    assert load_config("tuned-fedmf.toml").algorithm == "fedmf"
    assert Path("tuned-fedmf.db").exists()


def test_a_preset_outside_the_search_begins_at_its_edge(capsys: pytest.CaptureFixture[str]) -> None:
    assert preset("fedmf").model.settings.factors > 5
    assert exit_code_of([*SHORT, *ALONE, "--search", "model.factors=2..5", "--trials", "2", "--json", "-"]) == 0
    told = capsys.readouterr()
    assert "the first trial has 5" in told.err
    assert json.loads(told.out)["trials"][0]["settings"] == {"model.factors": 5}


def test_several_data_sets_each_have_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    other = "synthetic:clients=30,items=20,ratings_per_client=5,scale=0:10:1"
    assert exit_code_of([*SHORT, *SEARCH, *ALONE, "--dataset", other, "--trials", "2"]) == 0
    out = capsys.readouterr().out
    assert f"  {other}" in out
    assert "  ratings" in out


def test_a_killed_study_goes_on_to_the_same_winner(here: Path) -> None:
    command = [*SHORT, *SEARCH, *ALONE, "--trials", "6"]
    assert exit_code_of([*command, "--out", "whole.toml", "--json", "whole.json"]) == 0
    assert len(kill_after(2, *command, "--out", "parts.toml")) == 2
    assert load_config("parts.toml")
    assert len(kill_after(3, *command, "--out", "parts.toml")) == 1
    assert exit_code_of([*command, "--out", "parts.toml", "--json", "parts.json"]) == 0
    assert Path("whole.toml").read_bytes() == Path("parts.toml").read_bytes()
    assert trials_of("whole.json") == trials_of("parts.json")
    assert not list(here.glob(".*.part"))


def test_cuts_and_a_config_to_start_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*SHORT, *SEARCH, *ALONE, "--trials", "2", "--out", "first.toml"]) == 0
    again = ["tune", "--dataset", "ratings.csv", "--algorithm", "first.toml", *SEARCH, *ALONE, "--trials", "3"]
    more = ["--cuts", "2", "--cut-seed", "7", "--json", "found.json"]
    assert exit_code_of([*again, *more]) == 0
    found = json.loads(Path("found.json").read_text())
    assert found["cut_seeds"] == [7, 8]
    assert found["start"] == {**to_tables(load_config("first.toml")), "algorithm": "first"}
    assert to_tables(load_config("tuned-first.toml")) == found["config"]
    assert exit_code_of([*again, "--out", "first.toml"]) == 2
    assert "same file" in capsys.readouterr().err


def test_a_study_of_several_workers_that_is_killed_goes_on(here: Path) -> None:
    command = [*SHORT, *SEARCH, "--workers", "2"]
    kill_after(2, *command, "--trials", "6", "--out", "won.toml")
    assert exit_code_of([*command, "--trials", "6", "--out", "won.toml", "--json", "found.json"]) == 0
    found = json.loads(Path("found.json").read_text())
    assert [trial["number"] for trial in found["trials"]] == list(range(6))
    assert found["best"]["value"] == min(trial["value"] for trial in found["trials"] if trial["value"])
    assert to_tables(load_config("won.toml")) == found["config"]


def kill_after(trials: int, *arguments: str) -> list[str]:
    """Let the command be killed within the trial after so many have come to an end; returns what it said."""
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source), "TRIALS": str(trials)}
    command = [sys.executable, "-c", KILLED, *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("trial ")]


def trials_of(file: str) -> list[dict[str, Any]]:
    trials: list[dict[str, Any]] = json.loads(Path(file).read_text())["trials"]
    return [{name: value for name, value in trial.items() if name != "seconds"} for trial in trials]
