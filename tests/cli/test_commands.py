"""Every command does what its help says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import COMMANDS, exit_code_of
from fedrecplus.parts import KINDS, choices, part_class
from fedrecplus.settings import settings_of

TRAIN = ["train", "--dataset", "ratings.csv", "--set", "server.rounds=4"]
REQUIRED = {
    "dataset", "algorithm", "fold", "seed", "mae", "rmse", "nmse", "rounds", "seconds",
    "bytes_up_per_client_round", "bytes_down_per_client_round", "config",
}  # fmt: skip
MOST_LINES = 45
"""of a preset"""


def done(*arguments: str) -> None:
    assert exit_code_of(list(arguments)) == 0


def test_train_leaves_a_run_folder_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    done(*TRAIN, "--algorithm", "fedrec+", "--fold", "3", "--out", "run", "--json", "figures.json")
    figures = json.loads(Path("figures.json").read_text())
    assert figures == json.loads(Path("run/result.json").read_text())
    assert set(figures) >= REQUIRED
    assert (figures["algorithm"], figures["fold"], figures["rounds"]) == ("fedrec+", 3, 4)
    assert f"{figures['rmse']:.4f}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        [*TRAIN, "--algorithm", "fedmf"],
        ["recommend", "run", "--client", "1"],
        ["theory", "run", "--looks", "4"],
        ["compare", "--dataset", "ratings.csv", "--algorithm", "bias-only", "--folds", "2"],
        ["presets"],
        ["presets", "fedrec+"],
        ["settings", "similar"],
        ["data", "info", "ratings.csv"],
        ["audit", "--algorithm", "fedmf", *TRAIN[1:], "--users", "3", "--attacks", "popularity", "--workers", "1"],
        ["ablate", *TRAIN[1:], "--vary", "model.factors=2,3", "--folds", "2"],
    ],
    ids=lambda command: command[0],
)
def test_json_on_standard_output_is_alone_there(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if "run" in command[1:2]:
        done(*TRAIN, "--algorithm", "fedrec", "--out", "run")
        capsys.readouterr()
    done(*command, "--json", "-")
    told = capsys.readouterr()
    assert json.loads(told.out)
    assert told.err, "the table is on standard error"


def test_a_config_can_be_run_again_as_a_file_or_as_its_run_folder() -> None:
    Path("fedrec").mkdir()  # a preset's name is a preset, whatever folders there are
    done(*TRAIN, "--algorithm", "fedrec", "--seed", "5", "--out", "one", "--set", "model.factors=3")
    again = (["--algorithm", "one/config.toml"], ["--algorithm", "one"])
    for number, given in enumerate(again):
        done("train", "--dataset", "ratings.csv", *given, "--out", f"again-{number}")
        assert Path("one/model.safetensors").read_bytes() == Path(f"again-{number}/model.safetensors").read_bytes()


def test_full_trains_on_everything() -> None:
    done(*TRAIN, "--algorithm", "fedmf", "--full", "--out", "run")
    result = json.loads(Path("run/result.json").read_text())
    assert (result["fold"], result["rmse"], result["test_ratings"]) == (None, None, 0)


def test_without_out_each_run_gets_a_folder_of_its_own() -> None:
    for _ in range(2):
        done(*TRAIN, "--algorithm", "fedmf")
    folders = sorted(Path("runs").iterdir())
    assert len(folders) == 2
    assert folders[1].name == f"{folders[0].name}-2"
    done(*TRAIN, "--algorithm", "fedmf", "--resume")
    assert len(list(Path("runs").iterdir())) == 2


def test_own_columns_and_scale() -> None:
    lines = Path("ratings.csv").read_text().splitlines()[1:]
    Path("odd.txt").write_text("\n".join("x;" + line.replace(",", ";") for line in lines) + "\n")
    columns = ["--user-column", "2", "--item-column", "3", "--rating-column", "4", "--separator", ";"]
    odd = ["--dataset", "odd.txt", *columns, "--scale", "1:5:1"]
    done("train", *odd, *TRAIN[3:], "--algorithm", "fedmf", "--out", "run")
    done("train", "--resume", "--out", "run")


def test_recommend_shows_titles_of_unrated_items(capsys: pytest.CaptureFixture[str]) -> None:
    data = "synthetic:clients=40,items=50,ratings_per_client=8"
    done("train", "--dataset", data, *TRAIN[3:], "--algorithm", "fedmf", "--full", "--out", "run")
    client = str(fr.load(data).client_ids[0])
    capsys.readouterr()
    for kind in ("parquet", "csv", "json"):
        done("recommend", "run", "--all", "-n", "2", "--out", f"lists.{kind}")
    readers = (pl.read_parquet, pl.read_csv, pl.read_json)
    lists = [read(f"lists.{kind}") for read, kind in zip(readers, ("parquet", "csv", "json"), strict=True)]
    assert len({(len(one), one["item"].sum(), one["user"].n_unique()) for one in lists}) == 1
    assert str(client) in lists[0]["user"].cast(pl.String).to_list()
    assert exit_code_of(["recommend", "run"]) == 2
    assert exit_code_of(["recommend", "run", "--all", "--out", "lists.txt"]) == 2
    done("recommend", "run", "--client", client, "-n", "4", "--json", "best.json")
    best, out = json.loads(Path("best.json").read_text()), capsys.readouterr().out
    assert len(best) == 4
    assert all(item["title"] in out for item in best)


def test_compare_prints_whole_names_and_writes_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "c.json", "--csv", "c.csv", "--markdown", "c.md", "--out", "runs"]
    command = ["compare", "--dataset", "ratings.csv", "--algorithm", "fedmf,fedrec+private", "--folds", "2"]
    done(*command, "--set", "server.rounds=2", "--baseline", "bias-only", *files)
    found, out = json.loads(Path("c.json").read_text()), capsys.readouterr().out
    pairs = [(row["algorithm"], row["fold"]) for row in found["rows"]]
    assert pairs == [(name, fold) for name in ("fedmf", "fedrec+private") for fold in range(2)]
    assert all(set(row) >= REQUIRED for row in found["rows"])
    assert "published" in found
    assert all(name in out for name in ("fedmf", "fedrec+private", "global-mean", "bias-only"))
    assert "…" not in out
    assert Path("c.csv").read_text().count("\n") == 1 + 4 * 2
    assert "fedrec+private" in Path("c.md").read_text()
    assert Path("runs/fedrec+private/fold-1/result.json").exists()


def test_compare_takes_config_files_and_several_data_sets() -> None:
    Path("mine.toml").write_text("[model]\nfactors = 3\n[server]\nrounds = 2\n")
    sets = ["--dataset", "ratings.csv", "--dataset", "synthetic:clients=30,items=20,ratings_per_client=5"]
    done("compare", *sets, "--algorithm", "mine.toml", "--folds", "2", "--json", "c.json")
    rows = json.loads(Path("c.json").read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["mine"] * 4
    assert len({row["dataset"] for row in rows}) == 2


def test_a_config_file_has_one_name_in_all_commands() -> None:
    Path("mine.toml").write_text('extends = "fedmf"\n[server]\nrounds = 2\n')
    Path("tuned.toml").write_text(Path("mine.toml").read_text().replace("extends", 'algorithm = "fedmf"\nextends'))
    Path("named.toml").write_text(Path("mine.toml").read_text().replace("extends", 'algorithm = "short"\nextends'))
    compared = ["--folds", "2", "--set", "server.rounds=2", "--json", "c.json"]
    audited = ["--users", "2", "--rounds", "1", "--attacks", "popularity", "--workers", "1", "--json", "a.json"]
    for file, name in (("mine.toml", "mine"), ("tuned.toml", "tuned"), ("named.toml", "short")):
        done("train", "--dataset", "ratings.csv", "--algorithm", file, "--out", name)
        done("compare", "--dataset", "ratings.csv", "--algorithm", f"fedmf,{file}", *compared)
        done("audit", "--dataset", "ratings.csv", "--algorithm", file, *audited)
        assert json.loads(Path(name, "result.json").read_text())["algorithm"] == name
        assert {row["algorithm"] for row in json.loads(Path("c.json").read_text())["rows"]} == {"fedmf", name}
        assert {row["scheme"] for row in json.loads(Path("a.json").read_text())["rows"]} == {name}


def test_demo_compares_its_six_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    data = "synthetic:clients=30,items=25,ratings_per_client=6"
    done("demo", "--dataset", data, "--folds", "2", "--json", "d.json")
    names = {row["algorithm"] for row in json.loads(Path("d.json").read_text())["rows"]}
    assert names == {"fedmf", "fedrec", "fedrec++", "fedrec+", "fedrec+private", "fedrec+secure"}
    assert Path("runs/demo/fedrec+secure/fold-0/model.safetensors").exists()
    said = capsys.readouterr().out
    assert "recommend runs/demo/fedrec+secure/fold-0" in said
    done(*said.strip().splitlines()[-1].partition("fedrecplus ")[2].removesuffix(" --open").split())
    assert Path("runs/demo/fedrec+secure/fold-0/page/index.html").exists(), "the last line opens the page"


@pytest.mark.parametrize("name", fr.presets())
def test_presets_shows_every_meaning_in_a_file_that_train_reads(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    done("presets")
    assert name in capsys.readouterr().out
    done("presets", name)
    out = capsys.readouterr().out
    Path("mine.toml").write_text(out)
    assert fr.load_config("mine.toml") == fr.preset(name)
    assert all("  # " in line for line in out.splitlines() if "=" in line)
    assert len(out.splitlines()) <= MOST_LINES


def test_settings_lists_all_of_them_on_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    done("settings", "--json", "s.json")
    found, out = json.loads(Path("s.json").read_text())["settings"], capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    by_part: dict[str, list[str]] = {}
    for setting in found:
        by_part.setdefault(setting["part"], []).append(setting["name"])
        assert setting["meaning"]
        assert f"  {setting['name']} " in out
    for kind in KINDS:
        assert by_part[kind] == ["rule"]
        for rule in choices(KINDS[kind]):
            own = [setting.name for setting in settings_of(part_class(KINDS[kind], rule).settings_type)]
            assert by_part.get(f"{kind}.{rule}", []) == own
    ratio = next(each for each in found if (each["part"], each["name"]) == ("pseudo_items.similar", "ratio"))
    assert (ratio["default"], ratio["low"], ratio["high"]) == (1.0, 0.0, 1e6)
    redraw = next(each for each in found if each["name"] == "redraw")
    assert (redraw["low"], redraw["high"]) == (None, None)


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ("channel", {"channel", *(f"channel.{rule}" for rule in ("he", "secure", "shares", "sums"))}),
        ("similar", {"pseudo_items.similar"}),
        ("momentum", {"server_optimizer.momentum"}),
        ("model.mf", {"model.mf"}),
        ("server", {"server"}),
        ("general", {"general"}),
        ("own_rules.median", {"aggregation.own_rules.median"}),
        ("aggregation.own_rules.median", {"aggregation.own_rules.median"}),
        ("identity", set()),
    ],
)
def test_settings_of_a_part(
    asked: str, parts: set[str], here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "own_rules").mkdir()
    (here / "own_rules" / "median.py").write_text(
        "from fedrecplus.parts.aggregation.krum import Krum\n\nclass Mine(Krum): ...\n"
    )
    monkeypatch.syspath_prepend(here)
    done("settings", asked, "--json")
    assert {each["part"] for each in json.loads(capsys.readouterr().out)["settings"]} == parts


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    done("--version")
    assert capsys.readouterr().out == f"fedrecplus {fr.__version__}\n"
    done("--help")
    listed = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^  {command} +\S", listed, re.MULTILINE)


def test_the_version_is_the_package_s() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == fr.__version__


@pytest.mark.parametrize("command", ["train", "compare", "tune", "ablate", "audit", "data info"])
def test_commands_that_read_files_explain_the_same_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    done(*command.split(), "--help")
    out = capsys.readouterr().out
    for option in ("--user-column", "--item-column", "--rating-column", "--separator", "--scale", "--duplicates"):
        assert re.search(rf"{option} \S+ +Own file: ", out), option
    assert "\\[" not in out
    assert "--options" not in out
