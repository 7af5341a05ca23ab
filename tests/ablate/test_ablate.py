"""Ablations: every combination on every fold, the same numbers as a training, and every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, assign, preset
from fedrecplus.data.splits import split
from fedrecplus.errors import UserError
from fedrecplus.experiments.ablate import (
    STUDIES,
    Ablation,
    ablate,
    grid,
    label,
    parse_vary,
    study_of,
    table,
    to_csv,
    to_markdown,
)
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=40)
CONFIG = assign(preset("fedrec+"), ["server.rounds=3", "model.factors=4"])
DATA = "synthetic:clients=50,items=30,ratings_per_client=8"


@pytest.fixture(scope="module")
def found() -> Ablation:
    return ablate(RATINGS, CONFIG, ["pseudo_items.ratio=0.5,1", "aggregation.rule=uniform,wasserstein"], folds=2)


def test_every_combination_has_a_cell_with_a_row_per_fold(found: Ablation) -> None:
    settings = [tuple(cell.settings.values()) for cell in found.cells]
    assert settings == [(0.5, "uniform"), (0.5, "wasserstein"), (1.0, "uniform"), (1.0, "wasserstein")]
    assert all([row["fold"] for row in cell.rows] == [0, 1] for cell in found.cells)


def test_a_cell_is_what_trainings_with_its_settings_give(found: Ablation) -> None:
    config = assign(CONFIG, ["pseudo_items.ratio=1", "aggregation.rule=uniform"])
    errors = [fr.train(*split(RATINGS, fold, folds=2), config).rmse for fold in range(2)]
    assert [row["rmse"] for row in found.cells[2].rows] == errors
    assert found.cells[2].figures["rmse"].mean == pytest.approx(sum(errors) / 2)
    baselines = [cell.test and cell.test.baseline for cell in found.cells]
    assert baselines == [None, *[label(found.cells[0].settings)] * 3]


def test_tables_have_a_line_per_cell_or_per_cell_and_fold(found: Ablation) -> None:
    headings, rows = table(found.to_dict())
    assert headings[:2] == ["pseudo_items.ratio", "aggregation.rule"]
    assert len(rows) == 4
    lines = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert len(lines) == 8
    assert lines[2]["aggregation.rule"] == "wasserstein"
    assert to_markdown(found).count("\n|") == 6
    assert json.loads(json.dumps(found.to_dict()))["kind"] == "ablation"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["pseudo_items.ratio"], "names no values"),
        (["pseudo_items.ratio="], "names no values"),
        (["pseudo_items.ration=1"], "did you mean 'pseudo_items.ratio'"),
        (["pseudo_items.ratio=much"], "a number"),
        (["pseudo_items.ratio=1", "pseudo_items.ratio=2"], "varied twice"),
    ],
)
def test_what_cannot_be_varied_is_said(texts: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_vary(texts, assign(Config(), ["pseudo_items.rule=similar"]))


def test_an_option_can_be_varied_with_the_rule_that_brings_it() -> None:
    cells = grid(Config(), parse_vary(["pseudo_items.ratio=1,2", "pseudo_items.rule=random,similar"], Config()))
    assert [(c.pseudo_items.settings.ratio, c.pseudo_items.rule) for _, c in cells] == [
        (1.0, "random"), (1.0, "similar"), (2.0, "random"), (2.0, "similar"),
    ]  # fmt: skip


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("name", [name for name in fr.presets() if name not in ("pmf", "fedrec++", "biases")])
def test_the_paper_s_studies_can_start_from_any_federated_preset(study: str, name: str) -> None:
    config, vary = study_of(study, preset(name))
    cells = grid(config, parse_vary(vary, config))
    assert len(cells) >= 4
    assert all(changed.pseudo_items.rule != "none" for _, changed in cells)


def test_the_command_runs_both_studies_and_writes_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["--json", "a.json", "--csv", "a.csv", "--markdown", "a.md", "--out", "runs"]
    assert exit_code_of(["ablate", "--dataset", DATA, "--folds", "2", "--set", "server.rounds=2", *files]) == 0
    found = json.loads(Path("a.json").read_text())
    assert [study["study"] for study in found["studies"]] == list(STUDIES)
    assert set(found["made"]) >= {"command", "version", "commit", "seed", "when", "seconds"}
    shown = f"{found['studies'][1]['cells'][3]['rmse']['mean']:.4f}"
    assert shown in capsys.readouterr().out
    assert shown in Path("a.md").read_text()
    assert len(list(Path("runs").glob("*/*/fold-*/result.json"))) == sum(len(s["cells"]) for s in found["studies"]) * 2


def test_wrong_commands_are_answered_before_data_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, said in (
        (["two-by-too"], "did you mean 'two-by-two'"),
        (["two-by-two", "--vary", "seed=1,2"], "not both"),
        (["heterogeneity", "--vary", "seed=1,2"], "no use for --vary"),
        (["heterogeneity", "--out", "runs"], "no use for --out"),
        (["heterogeneity", "--rules", "crum"], "did you mean 'krum'"),
        (["heterogeneity", "--algorithm", "pmf"], "one place"),
        (["--rules", "krum"], "--rules is for `ablate heterogeneity` alone"),
        (["--algorithm", "pmf"], "one place"),
        (["--vary", "aggregation.rule=unifrom"], "did you mean 'uniform'"),
    ):
        assert exit_code_of(["ablate", "--dataset", "no-such-set", *wrong]) == 2
        assert said in capsys.readouterr().err
