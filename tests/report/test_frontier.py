"""The frontier: comparisons and audits of one training in one line, by what their configs say; and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from benchmarks.frontier import Extent, Step, run_all, steps
from fedrecplus.config import assign, preset, to_tables
from fedrecplus.web.report.cases import cases_of, protection_of
from fedrecplus.web.report.frontier import frontier_table


def trained(algorithm: str, rmse: float, *changes: str, **more: Any) -> dict[str, Any]:
    """A row of a comparison."""
    tables = to_tables(assign(preset("fedmf"), changes))
    costs = {"bytes_up_per_client_round": 2000.0, "seconds": 3.0, "rounds": 30, "ranking": {"ndcg@10": 0.1}}
    row = {"dataset": "d", "algorithm": algorithm, "fold": 0, "rmse": rmse, "config": tables, **costs}
    return {**row, **more}


def attacked(scheme: str, attack: str, auc: float | None, *changes: str, **more: Any) -> dict[str, Any]:
    """An audit of one row."""
    row = {"scheme": scheme, "attack": attack, "local_epochs": 1, "auc": auc, "bytes_up_per_client_round": 1.0, **more}
    config = tomli_w.dumps(to_tables(assign(preset("fedmf"), changes)))
    return {"dataset": "d", "rows": [row], "configs": {f"{scheme}, K=1": config}}


def test_a_training_and_its_audit_are_one_case() -> None:
    comparison = {"rows": [trained("fedmf", 0.8), trained("fedmf", 0.9, fold=1)]}
    audit = attacked("fedmf", "crowd", 0.7, rmse=0.5, auc_control=0.6, auc_worst_tenth=0.8)
    (case,) = cases_of([comparison], [audit])
    assert case.rmse == pytest.approx(0.85)  # the mean over folds, not the audit's one fold
    assert case.kb == 60.0
    assert case.strongest is not None
    assert case.strongest[1].gain == pytest.approx(0.1)


def test_the_same_algorithm_over_another_channel_is_another_case() -> None:
    comparison = {"rows": [trained("fedmf", 0.8), trained("fedmf", 0.81, "channel.rule=sums")]}
    found = cases_of([comparison], [attacked("fedmf", "crowd", 0.5, "channel.rule=sums")])
    assert [(case.channel, case.protection, bool(case.attacks)) for case in found] == [
        ("clear", "none", False),
        ("sums", "assumed", True),
    ]


def test_a_config_file_goes_by_its_name_in_both() -> None:
    audit = attacked("some/mine.toml", "crowd", 0.5, "algorithm=custom")
    assert len(cases_of([{"rows": [trained("mine", 0.8)]}], [audit])) == 1


def test_a_run_folder_goes_by_its_algorithm() -> None:
    audit = attacked("runs/first", "crowd", 0.5, "algorithm=fedmf")
    assert len(cases_of([{"rows": [trained("fedmf", 0.8)]}], [audit])) == 1


def test_the_strongest_attack_is_the_one_that_gains_most_over_its_control() -> None:
    audits = [
        attacked("fedmf", "popularity", 0.90, auc_control=0.90),
        attacked("fedmf", "crowd", 0.80, auc_control=0.60),
        attacked("fedmf", "taste", None),
        attacked("fedmf", "knows-others", 1.0, auc_control=0.5, knowing="everybody else"),
        attacked("fedmf", "idle", 0.9, auc_control=0.5, applies=False),
    ]
    (case,) = cases_of([], audits)
    assert case.strongest is not None
    assert case.strongest[0] == "crowd"
    assert case.attacks["knows-others"].gain == 0.5
    assert "idle" not in case.attacks


def test_a_blind_attack_is_no_figure_of_what_the_server_sees() -> None:
    audits = [
        attacked("fedrec+", "sums", 0.9, auc_control=0.5, blind=["rows"]),
        attacked("fedrec+", "unmix", 0.51, auc_control=0.5, blind=[]),
    ]
    (case,) = cases_of([], audits)
    assert case.strongest is not None
    assert case.strongest[0] == "unmix"
    assert case.attacks["sums"].gain is None


def test_epsilon_is_shown_where_there_is_one_and_seconds_only_where_nothing_was_skipped() -> None:
    tables = {"channel": {"rule": "sums"}, "privacy": {"rule": "central", "epsilon": 10.0}}
    assert protection_of(tables) == "ε = 10"
    assert protection_of({**tables, "privacy": {"rule": "none"}}) == "assumed"
    assert protection_of({**tables, "privacy": {"rule": "local", "epsilon": 10.0}}) == "ε = 10 per number"
    row = trained("fedmf", 0.8)
    row["config"]["channel"] = {"rule": "clear", "cryptography": "skipped"}
    (case,) = cases_of([{"rows": [row]}], [])
    assert case.seconds is None
    headings, lines = frontier_table([case])
    assert lines[0][list(headings).index("seconds per round")] == "–"


def test_a_rule_that_is_not_ours_is_never_imported() -> None:
    assert protection_of({"channel": {"rule": "nobody.has.this"}}) == "none"


def test_a_single_run_fills_in_what_folds_left_out() -> None:
    folds = [trained("fedmf", 0.8), trained("fedmf", 0.9, fold=1)]
    for row in folds:
        row["config"]["channel"] = {"rule": "he", "rows": "whole", "cryptography": "skipped"}
    run = trained("fedmf", 0.7, seconds=99.0)
    run["config"]["channel"] = {"rule": "he", "rows": "whole", "cryptography": "computed"}
    (case,) = cases_of([{"rows": folds}], [], [run])
    assert case.rmse == pytest.approx(0.85)
    assert case.seconds == 99.0 / 30
    assert case.protection == "computational"


def test_a_short_run_with_all_cryptography_lends_its_seconds_per_round() -> None:
    folds = [trained("fedmf", 0.8, "server.rounds=30")]
    folds[0]["config"]["channel"] = {"rule": "he", "rows": "whole", "cryptography": "skipped"}
    short = trained("fedmf", 1.7, "server.rounds=2", seconds=9.0, rounds=2)
    short["config"]["channel"] = {"rule": "he", "rows": "whole", "cryptography": "computed"}
    (case,) = cases_of([{"rows": folds}], [], [short])
    assert (case.rmse, case.rounds, case.seconds) == (0.8, 30, 4.5)
    short["config"]["channel"]["cryptography"] = "skipped"
    assert len(cases_of([{"rows": folds}], [], [short])) == 2, "another training, by which nothing was computed"


def test_trainings_of_different_settings_are_not_averaged_and_are_told_apart() -> None:
    exact = [trained("fedmf", 0.9), trained("fedmf", 0.92, fold=1)]
    noisy = [trained("fedmf", rmse, "statistics.epsilon=1", fold=fold) for fold, rmse in ((0, 1.0), (1, 1.02))]
    cases = cases_of([{"rows": [*exact, *noisy]}], [])
    assert [case.rmse for case in cases] == pytest.approx([0.91, 1.01])
    assert [case.name for case in cases] == [
        f"fedmf · clear · statistics.epsilon={epsilon}" for epsilon in ("0.0", "1.0")
    ]
    (case,) = cases_of([{"rows": [*exact, trained("fedmf", 0.97, "seed=7")]}], [])
    assert case.rmse == pytest.approx(0.93), "folds and seeds of the same settings are"


def test_an_audit_belongs_to_the_training_with_its_settings() -> None:
    rows = [trained("fedmf", 0.9), trained("fedmf", 1.0, "statistics.epsilon=1")]
    cases = cases_of([{"rows": rows}], [attacked("fedmf", "crowd", 0.7, "statistics.epsilon=1.0")])
    assert [bool(case.attacks) for case in cases] == [False, True]


def test_steps_have_names_and_places_of_their_own_and_read_what_there_is(tmp_path: Path) -> None:
    found = {step.name: step for step in steps(Extent(tmp_path / "frontier"))}
    assert len(found) == len(steps(Extent(tmp_path / "frontier")))
    written = [step.arguments[-1] for step in found.values()]
    assert len(set(written)) == len(written)
    assert all(Path(place).parent.name in ("frontier", "frontier-more") for place in written)
    for step in found.values():
        if step.after:
            assert found[step.after].arguments[-1] in step.arguments


def test_a_step_begins_after_the_one_it_reads_and_failures_are_told(tmp_path: Path) -> None:
    waits = Step("second", ("presets", "fedmf"), 9.0, after="first")
    done = run_all([waits, Step("first", ("presets", "fedrec"), 1.0), Step("bad", ("nothing",), 5.0)], 2, tmp_path)
    names = [one["name"] for one in done]
    assert names.index("first") < names.index("second")
    assert {one["name"]: one["code"] == 0 for one in done} == {"first": True, "second": True, "bad": False}
    assert "fedmf" in (tmp_path / "second.log").read_text(encoding="utf-8")
