"""Every command does what its help says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of

TRAIN = ["train", "--dataset", "ratings.csv", "--set", "server.rounds=4"]
REQUIRED = {
    "dataset", "algorithm", "fold", "seed", "mae", "rmse", "nmse", "rounds", "seconds",
    "bytes_up_per_client_round", "bytes_down_per_client_round", "config",
}  # fmt: skip


def test_train_leaves_a_run_folder_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        exit_code_of([*TRAIN, "--algorithm", "fedrec+", "--fold", "3", "--out", "run", "--json", "figures.json"]) == 0
    )
    figures = json.loads(Path("figures.json").read_text())
    assert figures == json.loads(Path("run/result.json").read_text())
    assert set(figures) >= REQUIRED
    assert (figures["algorithm"], figures["fold"], figures["rounds"]) == ("fedrec+", 3, 4)
    assert f"{figures['rmse']:.4f}" in capsys.readouterr().out


ON_STDOUT = {
    "train": [*TRAIN, "--algorithm", "fedmf", "--out", "run"],
    "recommend": ["recommend", "run", "--client", "1"],
    "theory": ["theory", "run", "--looks", "4"],
    "compare": ["compare", "--dataset", "ratings.csv", "--algorithms", "bias-only", "--folds", "2"],
    "data info": ["data", "info", "ratings.csv"],
    "audit": ["audit", "fedmf", *TRAIN[1:], "--users", "3", "--attacks", "popularity", "--workers", "1"],
    "ablate": ["ablate", *TRAIN[1:], "--vary", "model.factors=2,3", "--folds", "2"],
}


def test_json_on_standard_output_is_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in ON_STDOUT.items():
        assert exit_code_of([*command, "--json", "-"]) == 0, name
        told = capsys.readouterr()
        assert json.loads(told.out), name
        assert told.err, f"{name}: the table is on standard error"


def test_the_config_of_a_run_can_be_run_again() -> None:
    assert (
        exit_code_of([*TRAIN, "--algorithm", "fedrec", "--seed", "5", "--out", "one", "--set", "model.factors=3"]) == 0
    )
    assert exit_code_of(["train", "--dataset", "ratings.csv", "--config", "one/config.toml", "--out", "two"]) == 0
    assert Path("one/model.safetensors").read_bytes() == Path("two/model.safetensors").read_bytes()


def test_full_trains_on_everything() -> None:
    assert exit_code_of([*TRAIN, "--algorithm", "fedmf", "--full", "--out", "run"]) == 0
    result = json.loads(Path("run/result.json").read_text())
    assert (result["fold"], result["rmse"], result["test_ratings"]) == (None, None, 0)


def test_without_out_each_run_gets_a_folder_of_its_own() -> None:
    for _ in range(2):
        assert exit_code_of([*TRAIN, "--algorithm", "fedmf"]) == 0
    folders = sorted(Path("runs").iterdir())
    assert len(folders) == 2
    assert folders[1].name == f"{folders[0].name}-2"
    assert exit_code_of([*TRAIN, "--algorithm", "fedmf", "--resume"]) == 0
    assert len(list(Path("runs").iterdir())) == 2


def test_own_columns_and_scale() -> None:
    lines = Path("ratings.csv").read_text().splitlines()[1:]
    Path("odd.txt").write_text("\n".join("x;" + line.replace(",", ";") for line in lines) + "\n")
    columns = [
        "--user-column",
        "2",
        "--item-column",
        "3",
        "--rating-column",
        "4",
        "--separator",
        ";",
        "--scale",
        "1:5:1",
    ]
    command = ["train", "--dataset", "odd.txt", "--algorithm", "fedmf", "--set", "server.rounds=2", *columns]
    assert exit_code_of([*command, "--out", "run"]) == 0
    assert exit_code_of(["train", "--resume", "--out", "run"]) == 0


def test_recommend_shows_titles_of_unrated_items(capsys: pytest.CaptureFixture[str]) -> None:
    data = "synthetic:clients=40,items=50,ratings_per_client=8"
    assert (
        exit_code_of([*TRAIN[:1], "--dataset", data, *TRAIN[3:], "--algorithm", "fedmf", "--full", "--out", "run"]) == 0
    )
    client = str(fr.load(data).client_ids[0])
    capsys.readouterr()
    assert exit_code_of(["recommend", "run", "--client", client, "-n", "4", "--json", "best.json"]) == 0
    best = json.loads(Path("best.json").read_text())
    out = capsys.readouterr().out
    assert len(best) == 4
    assert all(item["title"] in out for item in best)


def test_compare_prints_whole_names_and_writes_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "c.json", "--csv", "c.csv", "--markdown", "c.md", "--out", "runs"]
    command = ["compare", "--dataset", "ratings.csv", "--algorithms", "fedmf,fedrec+private", "--folds", "2"]
    assert exit_code_of([*command, "--set", "server.rounds=2", "--baseline", "bias-only", *files]) == 0
    found = json.loads(Path("c.json").read_text())
    assert [(row["algorithm"], row["fold"]) for row in found["rows"]] == [
        (name, fold) for name in ("fedmf", "fedrec+private") for fold in range(2)
    ]
    assert all(set(row) >= REQUIRED for row in found["rows"])
    assert "published" in found
    out = capsys.readouterr().out
    assert all(name in out for name in ("fedmf", "fedrec+private", "global-mean", "bias-only"))
    assert "…" not in out
    assert Path("c.csv").read_text().count("\n") == 1 + 4 * 2
    assert "fedrec+private" in Path("c.md").read_text()
    assert Path("runs/fedrec+private/fold-1/result.json").exists()


def test_compare_takes_config_files_and_several_data_sets() -> None:
    assert exit_code_of([*TRAIN, "--algorithm", "fedmf", "--out", "run"]) == 0
    Path("mine.toml").write_text("[model]\nfactors = 3\n[server]\nrounds = 2\n")
    sets = ["--dataset", "ratings.csv", "--dataset", "synthetic:clients=30,items=20,ratings_per_client=5"]
    assert exit_code_of(["compare", *sets, "--algorithms", "mine.toml", "--folds", "2", "--json", "c.json"]) == 0
    rows = json.loads(Path("c.json").read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["mine"] * 4
    assert len({row["dataset"] for row in rows}) == 2


def test_demo_compares_its_five_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    data = "synthetic:clients=30,items=25,ratings_per_client=6"
    assert exit_code_of(["demo", "--dataset", data, "--folds", "2", "--json", "d.json"]) == 0
    names = {row["algorithm"] for row in json.loads(Path("d.json").read_text())["rows"]}
    assert names == {"fedmf", "fedrec", "fedrec++", "fedrec+", "fedrec+private"}
    assert Path("runs/demo/fedrec+/fold-0/model.safetensors").exists()
    assert "recommend runs/demo/fedrec+/fold-0" in capsys.readouterr().out


def test_presets_lists_and_shows_what_train_can_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["presets"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in fr.presets())
    assert exit_code_of(["presets", "fedrec+"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["aggregation"]["rule"] == "wasserstein"


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["--version"]) == 0
    assert capsys.readouterr().out == f"fedrecplus {fr.__version__}\n"
    for command in ([], ["train"], ["compare"], ["demo"], ["recommend"], ["presets"], ["data"]):
        assert exit_code_of([*command, "--help"]) == 0
        assert "Usage: fedrecplus" in capsys.readouterr().out


def test_the_version_is_the_package_s() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == fr.__version__


@pytest.mark.parametrize("command", ["train", "compare", "tune", "ablate", "audit", "data info"])
def test_commands_that_read_files_explain_the_same_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    for option in ("--user-column", "--item-column", "--rating-column", "--separator", "--scale", "--duplicates"):
        assert re.search(rf"{option} \S+ +Own file: ", out), option
    assert "\\[" not in out
    assert "--options" not in out
