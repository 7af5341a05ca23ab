"""The study: all cells, verdicts from numbers, honest words about divergence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import assign, preset
from fedrecplus.errors import UserError
from fedrecplus.experiments.heterogeneity.study import (
    FIGURES,
    SCENARIOS,
    START,
    Study,
    StudyCell,
    StudyExtent,
    heterogeneity,
)
from fedrecplus.experiments.heterogeneity.tables import table, to_csv, to_dict, to_markdown, verdict
from fedrecplus.experiments.statistics import PairedTest, fold_mean
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=60, items=50)
CONFIG = assign(START, ["server.rounds=4", "model.factors=4"])
SOME_RULES = ("wasserstein mean-own τ=0.5", "trimmed-mean")


@pytest.fixture(scope="module")
def study() -> Study:
    return heterogeneity(RATINGS, CONFIG, StudyExtent(rules=SOME_RULES), workers=1)


def test_every_scenario_meets_every_rule_and_uniform(study: Study) -> None:
    assert study.scenarios == list(SCENARIOS)
    assert study.rules == ["uniform", *SOME_RULES]
    assert len(study.cells) == len(SCENARIOS) * 3
    assert all(cell.mean() is not None for cell in study.cells)


def test_affected_clients_and_attackers_weights_are_reported_where_there_are_any(study: Study) -> None:
    for cell in study.cells:
        scenario = SCENARIOS[cell.scenario]
        assert (cell.mean("rmse_affected") is not None) == (scenario.change is not None or scenario.adaptive)
        weighed = scenario.adaptive and cell.rule != "trimmed-mean"
        assert (cell.mean("weight_share") is not None) == weighed
    copycat = study.cell("copycat", SOME_RULES[0])
    assert copycat
    assert copycat.mean("weight_share") > 0.3


def test_p_is_corrected_for_all_cells_of_the_study(study: Study) -> None:
    alone = heterogeneity(RATINGS, CONFIG, StudyExtent(("few",), SOME_RULES[1:]), workers=1)
    once, among_many = (found.cell("few", SOME_RULES[1]).test for found in (alone, study))
    assert once.p < 1.0
    assert among_many.difference == once.difference
    assert once.p < among_many.p <= 1.0


def test_a_second_study_gives_the_same(study: Study) -> None:
    again = heterogeneity(RATINGS, CONFIG, StudyExtent(("random",), SOME_RULES[:1]))
    assert again.cell("random", SOME_RULES[0]).figures == study.cell("random", SOME_RULES[0]).figures


def test_a_model_without_local_epochs_leaves_drift_out() -> None:
    config = assign(preset("fedrec+"), ["server.rounds=2", "model.factors=4"])
    found = heterogeneity(RATINGS, config, StudyExtent(rules=("uniform", "krum")), workers=1)
    assert found.scenarios == [name for name in SCENARIOS if not name.startswith("drift")]
    assert all(cell.mean() is not None for cell in found.cells)


def made_up(difference: float, p: float) -> StudyCell:
    figures = {**dict.fromkeys(FIGURES), "rmse": fold_mean([0.9])}
    return StudyCell("random", SOME_RULES[0], figures, PairedTest("uniform", 100, difference, p), 1.0)


@pytest.mark.parametrize(
    ("difference", "p", "said"),
    [(-0.01, 0.001, "helps"), (0.01, 0.001, "harms"), (-0.01, 0.2, "no difference"), (-0.0001, 1e-9, "no difference")],
)
def test_verdicts_follow_numbers(difference: float, p: float, said: str) -> None:
    cell = made_up(difference, p)
    uniform = replace(cell, rule="uniform", test=None)
    assert verdict(cell) == said
    _, (base, own) = table(to_dict(Study("set", "mf", 0.3, 1, "", [uniform, cell])))
    mark = {"helps": " ↓", "harms": " ↑"}.get(said, "")
    assert base == ["uniform", "0.9000", "", ""]
    assert own == [SOME_RULES[0], f"{difference:+.4f}{mark}", str(int(said == "helps")), str(int(said == "harms"))]


def test_a_step_that_blows_up_is_called_diverged() -> None:
    wild = assign(CONFIG, ["model.learning_rate=50", "server.rounds=20"])
    found = heterogeneity(RATINGS, wild, StudyExtent(("clean",), ("krum",)), workers=1)
    assert verdict(found.cells[1]) == "diverges"
    assert table(to_dict(found))[1] == [["uniform", "diverged", "", ""], ["krum", "diverged", "0", "0"]]


def test_every_format_says_the_same(study: Study) -> None:
    content = json.loads(json.dumps(to_dict(study), allow_nan=False))
    assert [cell["rmse"]["mean"] for cell in content["cells"]] == [cell.mean() for cell in study.cells]
    assert len(to_csv(study).splitlines()) == len(study.cells) + 1
    assert content["findings"]
    assert all(line in to_markdown(study) for line in content["findings"])
    assert all(" | ".join(row) in to_markdown(study) for row in table(content)[1])


@pytest.mark.parametrize(
    ("extent", "preset_name", "said"),
    [
        (StudyExtent(scenarios=("copicat",)), "fedmf", "did you mean 'copycat'"),
        (StudyExtent(rules=("crum",)), "fedmf", "did you mean 'krum'"),
        (StudyExtent(scenarios=()), "fedmf", "no scenario"),
        (StudyExtent(share=1.0), "fedmf", "no share"),
        (StudyExtent(folds=6), "fedmf", "6 of 5 folds"),
        (StudyExtent(), "pmf", "one place"),
        (StudyExtent(), "fedrec++", "channel.rule=denoising"),
        (StudyExtent(scenarios=("drift-5",)), "fedmf", "no option 'local_epochs'"),
    ],
)
def test_what_can_t_be_run_is_refused(extent: StudyExtent, preset_name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        heterogeneity(RATINGS, preset(preset_name), extent)


def test_the_command_prints_the_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = "synthetic:clients=50,items=30,ratings_per_client=8"
    command = ["ablate", "heterogeneity", "--dataset", data, "--set", "server.rounds=2"]
    assert (
        exit_code_of([*command, "--scenarios", "clean,copycat", "--rules", "size", "--json", str(tmp_path / "h.json")])
        == 0
    )
    content, out = json.loads((tmp_path / "h.json").read_text()), capsys.readouterr().out
    assert content["findings"]
    assert all(finding in out for finding in content["findings"])
    assert content["made"]["seed"] == 0
