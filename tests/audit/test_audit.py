"""The whole audit, and its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fedrecplus.audit.audit import Extent, audit_case, cases
from fedrecplus.audit.running import run
from fedrecplus.audit.tables import HEADINGS, line, strongest_to_markdown, summary, to_markdown
from fedrecplus.config import assign, dumps, preset
from fedrecplus.data import split
from fedrecplus.errors import UserError
from tests.audit.conftest import small_town

SMALL = ["model.factors=4", "server.rounds=6"]
FIELDS = {
    "scheme", "attack", "pseudo_ratio", "local_epochs", "rmse", "bytes_up_per_client_round", "rating_exact",
    "rating_floor", "precision", "recall", "f1", "auc", "tpr_at_1pct_fpr", "chance",
}  # fmt: skip
QUICK = Extent(rounds=4, users=8, attacks=("popularity", "one-round", "intersection"))


def small(name: str, *settings: str):
    return assign(preset(name), [*SMALL, *settings])


def test_a_scheme_is_audited_at_one_epoch_and_at_its_own() -> None:
    found = cases({"a": small("fedmf", "client.local_epochs=5"), "b": small("fedrec")})
    assert [(case.scheme, case.config.client.local_epochs) for case in found] == [("a", 1), ("a", 5), ("b", 1)]


def test_rows_have_all_fields_and_can_be_written_as_json() -> None:
    training, test = split(small_town(), 0)
    rows = [
        row
        for case in cases({"fedrec": small("fedrec"), "fedmf": small("fedmf", "client.local_epochs=1")})
        for row in audit_case(case, training, test, QUICK)
    ]
    assert [row["attack"] for row in rows[:3]] == ["popularity", "one-round", "intersection"]
    for row in rows:
        assert set(row) >= FIELDS
        assert 0.5 < row["rmse"] < 3.0
        assert row["bytes_up_per_client_round"] > 0
    assert {row["pseudo_ratio"] for row in rows} == {1.0, 0.0}
    assert all(row["auc"] is None for row in rows if row["scheme"] == "fedmf")
    assert json.loads(json.dumps(rows)) == json.loads(json.dumps(rows, allow_nan=False))
    assert all(len(line(row)) == len(HEADINGS) for row in rows)
    assert len(summary(rows)) == 2
    assert to_markdown(rows).count("\n") == 4
    assert strongest_to_markdown(rows).count("\n") == 3, "without pseudo rows there is no strongest attack on them"


def test_a_scheme_that_diverges_gets_rows_that_say_so() -> None:
    training, test = split(small_town(), 0)
    case = cases({"wild": small("fedmf", "client.learning_rate=9000", "client.local_epochs=1")})[0]
    rows = audit_case(case, training, test, QUICK)
    assert all(row["rmse"] is None and "diverged" in row["note"] for row in rows)
    assert "diverged" in summary(rows)[0]


def test_a_scheme_that_diverges_at_first_is_trained_with_a_smaller_step() -> None:
    training, test = split(small_town(), 0)
    case = cases({"wild": small("fedmf", "client.learning_rate=3", "client.local_epochs=1", "server.rounds=12")})[0]
    rows = audit_case(case, training, test, QUICK)
    assert all(row["rmse"] is not None and "diverged" in row["note"] for row in rows)


def test_two_workers_find_what_one_finds() -> None:
    training, test = split(small_town(), 0)
    found = cases({"fedmf": small("fedmf", "client.local_epochs=2")})
    told: list[str] = []
    alone = run(found, training, test, QUICK, workers=1)
    together = run(found, training, test, QUICK, workers=2, tell=lambda case, what, share: told.append(what))
    assert json.dumps(alone) == json.dumps(together)
    assert told


def test_nothing_is_uploaded_where_training_is_central() -> None:
    with pytest.raises(UserError, match="nothing is uploaded"):
        cases({"pmf": preset("pmf")})


def test_unknown_attacks_are_named() -> None:
    with pytest.raises(UserError, match="one-rund"):
        _ = Extent(attacks=("one-rund",)).names


def test_the_command_writes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = pytest.importorskip("fedrecplus.cli.audit")
    monkeypatch.setattr(command, "load_with_bar", lambda *_: small_town())
    app = typer.Typer()
    app.command()(command.audit_command)
    config = tmp_path / "mine.toml"
    config.write_text(dumps(small("fedrec")))
    out = tmp_path / "leaks.json"
    arguments = [str(config), "--dataset", "x", "--rounds", "3", "--users", "5", "--attacks", "popularity,one-round"]
    found = CliRunner().invoke(app, [*arguments, "--workers", "1", "--json", str(out)], catch_exceptions=False)
    assert found.exit_code == 0
    assert "one-round" in found.output
    content = json.loads(out.read_text())
    assert len(content["rows"]) == 2
    assert all(set(row) >= FIELDS and row["scheme"] == str(config) for row in content["rows"])


def test_the_command_takes_the_folder_of_a_run_and_changes_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = pytest.importorskip("fedrecplus.cli.audit")
    monkeypatch.setattr(command, "load_with_bar", lambda *_: small_town())
    app = typer.Typer()
    app.command()(command.audit_command)
    folder, out = tmp_path / "run", tmp_path / "leaks.json"
    folder.mkdir()
    (folder / "config.toml").write_text(dumps(small("fedrec")))
    arguments = [str(folder), "--dataset", "x", "--rounds", "2", "--users", "5", "--attacks", "popularity"]
    changed = ["--set", "pseudo_items.ratio=2", "--workers", "1", "--json", str(out)]
    found = CliRunner().invoke(app, [*arguments, *changed], catch_exceptions=False)
    assert found.exit_code == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert (row["scheme"], row["pseudo_ratio"]) == (str(folder), 2.0)
