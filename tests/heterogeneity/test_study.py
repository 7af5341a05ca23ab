"""The study: all cells, verdicts from numbers, honest words about divergence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import assign, preset
from fedrecplus.errors import UserError
from fedrecplus.experiments.heterogeneity import Cell, Extent, Study, heterogeneity
from fedrecplus.experiments.heterogeneity_scenarios import RULES, SCENARIOS
from fedrecplus.experiments.heterogeneity_tables import findings, table, to_csv, to_dict, to_markdown, verdict
from fedrecplus.experiments.statistics import PairedTest, spread
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=60, items=50)
CONFIG = assign(preset("fedmf"), ["server.rounds=4", "model.factors=4"])
SOME_RULES = ["wasserstein mean-own τ=0.5", "coordinate-median"]


@pytest.fixture(scope="module")
def study() -> Study:
    return heterogeneity(RATINGS, CONFIG, Extent(rules=tuple(SOME_RULES)))


def test_every_scenario_meets_every_rule_and_uniform(study: Study) -> None:
    assert study.scenarios == list(SCENARIOS)
    assert study.rules == ["uniform", *SOME_RULES]
    assert len(study.cells) == len(SCENARIOS) * 3
    assert all(cell.rmse and np.isfinite(cell.rmse.mean) for cell in study.cells)


def test_affected_clients_are_judged_apart(study: Study) -> None:
    for cell in study.cells:
        assert (cell.rmse_affected is not None) == SCENARIOS[cell.scenario].affects


def test_weights_are_reported_where_there_are_any(study: Study) -> None:
    copycat = study.cell("copycat", SOME_RULES[0])
    assert copycat
    assert copycat.weight_share
    assert copycat.weight_share.mean > 0.3
    median = study.cell("copycat", "coordinate-median")
    assert median
    assert median.weight_share is None


def test_a_second_study_gives_the_same(study: Study) -> None:
    again = heterogeneity(RATINGS, CONFIG, Extent(("random",), tuple(SOME_RULES[:1])), workers=1)
    expected = study.cell("random", SOME_RULES[0])
    found = again.cell("random", SOME_RULES[0])
    assert expected
    assert found
    assert expected.rmse == found.rmse


def made_up(difference: float, p: float) -> Cell:
    test = PairedTest("uniform", 100, difference, p)
    return Cell("random", SOME_RULES[0], spread([0.9]), None, None, None, test, 1.0)


@pytest.mark.parametrize(
    ("difference", "p", "said"),
    [(-0.01, 0.001, "helps"), (0.01, 0.001, "harms"), (-0.01, 0.2, "no difference"), (-0.0001, 1e-9, "no difference")],
)
def test_verdicts_follow_numbers(difference: float, p: float, said: str) -> None:
    cell = made_up(difference, p)
    assert verdict(cell) == said
    uniform = replace(cell, rule="uniform", test=None)
    words = findings(Study("set", "fedmf", 0.3, 1, "", [uniform, cell]))[0]
    assert f"{said}: random" in words


def test_divergence_is_called_that() -> None:
    diverged = replace(made_up(0.0, 1.0), rmse=None, test=None)
    study = Study("set", "fedmf", 0.3, 1, "", [replace(diverged, rule="uniform"), diverged])
    assert verdict(diverged) == "diverges"
    assert table(study)[1][1] == [SOME_RULES[0], "diverged"]
    assert "random: every rule diverged." in findings(study)


def test_a_step_that_blows_up_is_reported_as_diverged() -> None:
    wild = assign(CONFIG, ["client.learning_rate=50", "server.rounds=20"])
    found = heterogeneity(RATINGS, wild, Extent(("clean",), ("uniform",)))
    assert found.cells[0].rmse is None


def test_every_format_says_the_same(study: Study) -> None:
    content = json.loads(json.dumps(to_dict(study), allow_nan=False))
    assert len(content["cells"]) == len(study.cells)
    assert len(to_csv(study).splitlines()) == len(study.cells) + 1
    assert all(line in to_markdown(study) for line in content["findings"])


@pytest.mark.parametrize(
    ("extent", "preset_name", "said"),
    [
        (Extent(scenarios=("copicat",)), "fedmf", "did you mean 'copycat'"),
        (Extent(rules=("crum",)), "fedmf", "did you mean 'krum'"),
        (Extent(scenarios=()), "fedmf", "no scenario"),
        (Extent(share=1.0), "fedmf", "share of 1"),
        (Extent(folds=6), "fedmf", "6 of 5 folds"),
        (Extent(), "pmf", "one place"),
        (Extent(), "fedrec++", "denoises"),
    ],
)
def test_what_can_t_be_run_is_refused(extent: Extent, preset_name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        heterogeneity(RATINGS, preset(preset_name), extent)


def test_readings_temperatures_and_robust_rules_are_all_there() -> None:
    assert {"uniform", "coordinate-median", "trimmed-mean", "krum"} < set(RULES)
    assert sum(name.startswith("wasserstein") for name in RULES) == 6


def test_the_command_prints_the_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = "synthetic:clients=50,items=30,ratings_per_client=8"
    command = ["ablate", "heterogeneity", "--dataset", data, "--set", "server.rounds=2", "--scenarios", "clean,random"]
    assert exit_code_of([*command, "--rules", "trimmed-mean", "--json", str(tmp_path / "h.json")]) == 0
    content = json.loads((tmp_path / "h.json").read_text())
    out = capsys.readouterr().out
    assert all(finding in out for finding in content["findings"])
    assert content["made"]["seed"] == 0
