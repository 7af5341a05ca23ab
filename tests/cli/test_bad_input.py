"""What a user can get wrong on the command line: exit code 2, a clear line, nothing written.

Which settings, files and columns are refused, and in which words, is tested where they are read: here are the commands.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.files import write_json, write_tensors, write_text
from tests.cli.refusing import refused

TRAIN = ["train", "--dataset", "ratings.csv", "--algorithm", "fedmf"]
MF = [*TRAIN[:4], "fedrec"]
COMPARE = ["compare", "--dataset", "ratings.csv"]
WILD = ["--set", "model.learning_rate=1e5"]

BAD = {
    "unknown command": (["trian"], "did you mean 'train'"),
    "unknown subcommand": (["data", "lits"], "did you mean 'list'"),
    "unknown option": ([*TRAIN, "--foldd", "1"], "--fold"),
    "ratings without their option": (["train", "ratings.csv"], "--dataset NAME-OR-FILE"),
    "no data set": (["train", "--algorithm", "fedmf"], "--dataset"),
    "unknown data set": (["train", "--dataset", "ml-100", "--algorithm", "fedmf"], "did you mean 'ml-100k'"),
    "missing file": (["train", "--dataset", "there/is.csv", "--algorithm", "fedmf"], "there/is.csv"),
    "unknown algorithm": ([*TRAIN[:3], "--algorithm", "fedrek"], "did you mean 'fedrec'"),
    "nothing to train": ([*TRAIN[:3], "--algorithm", "popularity"], "--algorithm fedrec+,popularity"),
    "ablate on one fold": (["ablate", "--dataset", "ratings.csv", "--folds", "1"], "give 2 or more"),
    "unknown setting": ([*MF, "--set", "model.lerning_rate=1"], "did you mean 'model.learning_rate'"),
    "an option of another rule": (
        [*TRAIN, "--set", "aggregation.temperature=0.1"],
        "aggregation.rule=wasserstein first",
    ),
    "setting out of range": ([*TRAIN, "--set", "server.rounds=0"], "between 1 and 1e+07"),
    "a fold that isn't there": ([*TRAIN, "--fold", "5"], "no fold 5"),
    "fold that is no number": ([*TRAIN, "--fold", "first"], "first"),
    "fold and full": ([*TRAIN, "--fold", "1", "--full"], "give one of them"),
    "resume and overwrite": ([*TRAIN, "--resume", "--overwrite"], "give one of them"),
    "nothing to resume": ([*TRAIN, "--resume", "--out", "run"], "no run to resume"),
    "nothing to resume in runs": ([*TRAIN, "--resume"], "to resume"),
    "out is a file": ([*TRAIN, "--out", "ratings.csv"], "is a file"),
    "out where nothing can be written": ([*TRAIN, "--out", "/proc/run"], "can't be written"),
    "json is a folder": ([*TRAIN, "--json", "."], "is a folder"),
    "json below a file": ([*TRAIN, "--json", "ratings.csv/figures.json"], "is a file"),
    "json where nothing can be written": ([*TRAIN, "--json", "/proc/new/figures.json"], "can't be written"),
    "json is a device": ([*TRAIN, "--json", "/dev/null"], "is a device"),
    "an encoder of metadata that isn't there": (
        [*TRAIN, "--set", "pseudo_items.rule=similar", "--set", "encoder.rule=content"],
        "needs titles, genres or years",
    ),
    "a table too large for its covariance": (
        [
            *TRAIN,
            *(f"--set=aggregation.{one}" for one in ("rule=wasserstein", "covariance=full")),
            "--set=model.factors=60",
        ],
        "at most 2,000 numbers",
    ),
    "steps too large to train with": ([*MF, *WILD, "--out", "run"], "diverged"),
    "rating off the scale": ([*TRAIN, "--scale", "1:3:1"], "line"),
    "file options for a known set": (["train", "--dataset", "ml-100k", *TRAIN[3:], "--scale", "1:5:1"], "files only"),
    "compare nothing": ([*COMPARE, "--algorithm", ","], "nothing to compare"),
    "compare an unknown one": ([*COMPARE, "--algorithm", "fedmf,fedrec*"], "unknown algorithm 'fedrec*'"),
    "compare one twice": ([*COMPARE, "--algorithm", "fedmf,fedmf"], "twice"),
    "unknown baseline": ([*COMPARE, "--algorithm", "fedmf", "--baseline", "fedrec"], "unknown baseline"),
    "compare into a file": ([*COMPARE, "--algorithm", "fedmf", "--out", "ratings.csv"], "is a file"),
    "compare, resume and overwrite": (
        [*COMPARE, "--algorithm", "fedmf", "--out", "runs", "--resume", "--overwrite"],
        "give one of them",
    ),
    "recommend from nowhere": (["recommend", "run", "--client", "1"], "no such folder"),
    "recommend from no run": (["recommend", ".", "--client", "1"], "model.safetensors"),
    "unknown preset": (["presets", "fedrec+privat"], "did you mean 'fedrec+private'"),
    "unknown part": (["settings", "similr"], "did you mean 'similar'"),
    "unknown rule of a kind": (["settings", "pseudo_items.similr"], "did you mean 'similar'"),
    "no part at all": (["settings", "json.decoder"], "is no part"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_said_and_nothing_is_written(case: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(*BAD[case], here, capsys)


def test_a_run_in_the_way_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    short = [*TRAIN, "--set", "server.rounds=2", "--out", "run"]
    assert exit_code_of(short) == 0
    before = Path("run/result.json").read_bytes()
    assert exit_code_of([*short, "--seed", "1"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert exit_code_of([*short, "--seed", "1", "--resume"]) == 2
    assert "seed: 0 then, 1 now" in capsys.readouterr().err
    assert Path("run/result.json").read_bytes() == before
    assert exit_code_of([*short, "--seed", "1", "--overwrite"]) == 0


def test_a_run_in_the_way_is_refused_before_settings_are_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed = ["train", "--dataset", "synthetic:clients=20,items=20,ratings_per_client=5", "--out", "run"]
    assert exit_code_of([*unnamed, "--algorithm", "biases"]) == 0
    monkeypatch.setattr("fedrecplus.cli.train.choose", lambda *_: pytest.fail("trained for nothing"))
    capsys.readouterr()
    assert exit_code_of(unnamed) == 2
    assert "holds a finished run" in capsys.readouterr().err


@pytest.mark.parametrize(("began", "now"), [("biases", "fedmf"), ("fedrec+secure", "fedmf"), ("fedmf", "biases")])
def test_a_run_is_not_resumed_by_another_algorithm(began: str, now: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--dataset", "synthetic:clients=20,items=20,ratings_per_client=5"]
    short = ["train", *data, "--set", "server.rounds=1", "--out", "run"]
    assert exit_code_of([*short, "--algorithm", began]) == 0
    capsys.readouterr()
    assert exit_code_of(["train", "--resume", "--out", "run", "--algorithm", now]) == 2
    assert f"'{began}' then, '{now}' now" in " ".join(capsys.readouterr().err.split())


def test_names_that_two_kinds_share_are_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["settings", "nope"]) == 2
    assert "none, none" not in " ".join(capsys.readouterr().err.split())


def test_a_model_that_the_page_cannot_compute_comes_with_a_preset_that_it_can(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = "synthetic:clients=20,items=20,ratings_per_client=5"
    assert exit_code_of(["train", "--dataset", data, "--algorithm", "fedncf", "--out", "run"]) == 0
    capsys.readouterr()
    assert exit_code_of(["page", "run"]) == 2
    assert "--algorithm=fedrec+secure" in capsys.readouterr().err


def test_compared_runs_in_the_way_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    short = [*COMPARE, "--algorithm", "fedmf", "--folds", "2", "--set", "server.rounds=2", "--out", "runs"]
    assert exit_code_of(short) == 0
    before = Path("runs/fedmf/fold-0/result.json").read_bytes()
    assert exit_code_of([*short, "--seed", "1"]) == 2
    assert "runs/fedmf/fold-0 holds a finished run" in capsys.readouterr().err
    assert Path("runs/fedmf/fold-0/result.json").read_bytes() == before
    assert exit_code_of([*short, "--seed", "1", "--overwrite"]) == 0
    assert Path("runs/fedmf/fold-0/result.json").read_bytes() != before


def test_a_run_that_cannot_come_to_its_end_leaves_other_files_alone() -> None:
    Path("run").mkdir()
    Path("run/notes.txt").write_text("mine")
    assert exit_code_of([*MF, *WILD, "--out", "run"]) == 2
    assert [file.name for file in Path("run").iterdir()] == ["notes.txt"]


def test_a_client_that_isn_t_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*TRAIN, "--set", "server.rounds=2", "--out", "run"]) == 0
    assert exit_code_of(["recommend", "run", "--client", "nobody"]) == 2
    assert "unknown client 'nobody'" in capsys.readouterr().err


@pytest.fixture
def old_run(here: Path) -> Path:
    """A run folder as fedrecplus 0.1 left it."""
    folder = here / "old"
    write_text(folder / "config.toml", "[model]\nfactors = 20\n\n[client]\nlearning_rate = 0.1\n")
    write_json(folder / "data.json", {"dataset": "ratings.csv", "fold": 0, "fingerprint": ""})
    write_json(folder / "result.json", {"dataset": "ratings.csv", "learning_rate": 0.1})
    write_tensors(folder / "model.safetensors", {"V": np.zeros((2, 2))}, {"facts": "{}"}, private=False)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--resume", "--out", "old"],
        ["train", "--dataset", "ratings.csv", "--algorithm", "old"],
        [*COMPARE, "--algorithm", "old/config.toml"],
        ["recommend", "old", "--client", "1"],
        ["theory", "old"],
    ],
    ids=" ".join,
)
def test_an_old_run_is_refused_with_the_version_that_reads_it(
    command: list[str], old_run: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(command, "fedrecplus 0.1", here, capsys)


def test_rules_that_a_run_folder_names_are_imported_only_if_allowed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text(
        here / "mine" / "rule.py",
        "from fedrecplus.parts.pseudo_items.random import Random\n\nclass Mine(Random): ...\n",
    )
    monkeypatch.syspath_prepend(here)
    mine = ["--set", "pseudo_items.rule=mine.rule", "--set", "server.rounds=4"]
    assert exit_code_of([*MF, *mine, "--out", "run"]) == 0
    assert exit_code_of([*MF, *mine, "--out", "run", "--resume"]) == 0
    capsys.readouterr()
    for command in (
        ["train", "--resume", "--out", "run"],
        ["recommend", "run", "--client", "1"],
        ["theory", "run", "--looks", "4"],
        [*COMPARE, "--algorithm", "run", "--folds", "2"],
    ):
        assert exit_code_of(command) == 2
        assert "--allow-rule" in capsys.readouterr().err
        assert exit_code_of([*command, "--allow-rule", "mine.rule"]) == 0
