"""The whole audit, and its command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.audit_tables import every_attack_to_markdown, strongest_to_markdown
from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases, run_cases
from fedrecplus.audit.tables import (
    AUDIT_HEADINGS,
    strongest,
    summary,
    table_line,
    to_markdown,
    verdict_sentence,
    who_reads_what,
)
from fedrecplus.audit.worlds import exchanged_ratings
from fedrecplus.config import Config, assign, dumps, preset
from fedrecplus.data import split
from fedrecplus.errors import UserError
from tests.audit.conftest import command_json, command_output, small_town
from tests.outside.my_rules import FILES

FIELDS = {
    "scheme", "attack", "pseudo_ratio", "local_epochs", "rmse", "bytes_up_per_client_round", "rating_exact",
    "rating_floor", "precision", "recall", "f1", "auc", "tpr_at_1pct_fpr", "chance", "note", "recorded_rounds",
    "pseudo_items", "virtual_ratings", "auc_worst_tenth", "auc_control", "rating_exact_control", "knowing", "channel",
    "shows", "applies", "against", "blind",
}  # fmt: skip
QUICK = AuditExtent(rounds=4, users=8, attacks=("popularity", "one-round", "intersection"))
TAKEN_APART = ("model.interaction_factors=16", "channel.fewest_contributors=1", "channel.bits=32")
"""sums that unmix reads"""
STEPPED = ("model.rule=mf", "model.learning_rate=0.5", "server_optimizer.rule=sgd")


def small(name: str, *settings: str) -> Config:
    return assign(preset(name), ["model.factors=4", "server.rounds=6", *settings])


def rows_of(config: Config, extent: AuditExtent = QUICK) -> list[dict[str, Any]]:
    training, test = split(small_town(), 0)
    return audit_case(audit_cases({"mine": config})[-1], training, test, extent)


def test_a_scheme_is_audited_at_one_epoch_and_at_its_own_where_its_model_has_epochs() -> None:
    found = audit_cases(
        {"a": small("fedmf", *STEPPED, "model.local_epochs=5"), "b": small("fedrec"), "c": small("fedmf")}
    )
    assert [(case.scheme, case.epochs) for case in found] == [("a", 1), ("a", 5), ("b", 1), ("c", 1)]


def test_rows_have_all_fields_and_make_tables() -> None:
    rows = [*rows_of(small("fedrec")), *({**row, "scheme": "fedmf"} for row in rows_of(small("fedmf")))]
    assert [row["attack"] for row in rows[:3]] == ["popularity", "one-round", "intersection"]
    for row in rows:
        assert set(row) >= FIELDS
        assert 0.5 < row["rmse"] < 3.0
        assert row["bytes_up_per_client_round"] > 0
    assert {row["pseudo_ratio"] for row in rows} == {1.0, 0.0}
    assert all(row["auc"] == 1.0 and row["against"] == "unrated" for row in rows if row["scheme"] == "fedmf")
    for row in rows:
        for name in ("auc", "auc_worst_tenth", "auc_control", "rating_exact", "rating_exact_control"):
            assert 0.0 <= row[name] <= 1.0
    json.dumps(rows, allow_nan=False)
    assert all(len(table_line(row)) == len(AUDIT_HEADINGS) for row in rows)
    assert len(summary(rows)) == 2
    assert to_markdown(rows).count("\n") == 4
    assert strongest_to_markdown(rows).count("\n") == 4
    assert every_attack_to_markdown(rows).count("\n") == 4


@pytest.mark.parametrize(("rate", "trained"), [(9000, False), (3, True)])
def test_a_scheme_that_diverges_is_trained_with_a_smaller_step_and_rows_say_so(rate: float, trained: bool) -> None:
    rows = rows_of(small("fedmf", "model.rule=mf", f"model.learning_rate={rate}", "server.rounds=12"))
    assert all((row["rmse"] is not None) == trained and "diverged" in row["note"] for row in rows)
    assert "diverged" in summary(rows)[0]
    assert trained or (who_reads_what(rows) == [] and "diverged" in verdict_sentence(rows))


def test_what_a_channel_does_not_show_is_not_attacked_and_rows_say_so() -> None:
    rows = rows_of(small("fedmf", "channel.rule=sums"), replace(QUICK, attacks=(*QUICK.attacks, "differencing")))
    assert [row["applies"] for row in rows] == [False, False, False, True]
    for row in rows:
        assert (row["shows"], row["against"]) == (["statistics", "sums"], "unrated")
        assert row["auc"] == pytest.approx(0.5, abs=0.08)
        assert row["rating_exact"] == row["rating_exact_control"] > 0.0
    assert table_line(rows[0])[7:] == ["–"] * 10
    assert "differencing" in summary(rows)[0]


def test_tables_and_sentences_name_blind_attacks_and_never_count_them_as_the_strongest() -> None:
    extent = replace(QUICK, attacks=("sums", "knows-others"))
    rows = rows_of(small("fedrec+secure", "model.interaction_factors=4"), extent)
    blind, other = rows
    assert blind["blind"] == ["rows"]
    assert table_line(blind)[10].endswith("blind")
    assert not table_line(other)[10].endswith("blind")
    assert "blind" in summary(rows)[0]
    assert strongest([{**blind, "auc": 0.9, "knowing": "everybody else"}, other], "everybody else") is other


def test_two_workers_find_what_one_finds() -> None:
    training, test = split(small_town(), 0)
    found = audit_cases({"fedmf": small("fedmf", *STEPPED, "model.local_epochs=2")})
    told: list[str] = []
    alone = run_cases(found, training, test, QUICK, workers=1)
    together = run_cases(found, training, test, QUICK, workers=2, tell=lambda case, what, share: told.append(what))
    assert json.dumps(alone) == json.dumps(together)
    assert told


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(UserError, match="nothing is uploaded"):
        audit_cases({"pmf": preset("pmf")})
    with pytest.raises(UserError, match="one-rund"):
        _ = AuditExtent(attacks=("one-rund",)).chosen


def test_the_command_takes_a_file_or_a_run_and_changes_its_settings(tmp_path: Path, monkeypatch) -> None:
    folder, file = tmp_path / "run", tmp_path / "mine.toml"
    folder.mkdir()
    for place in (folder / "config.toml", file):
        place.write_text(dumps(small("fedrec")))
    schemes = ["--algorithm", f"{folder},{file}", "--attacks", "popularity,one-round"]
    content = command_json(tmp_path, monkeypatch, *schemes, "--set", "pseudo_items.ratio=2")
    assert [row["scheme"] for row in content["rows"]] == ["fedrec"] * 2 + ["mine"] * 2
    assert all(set(row) >= FIELDS and row["pseudo_ratio"] == 2.0 for row in content["rows"])


@pytest.mark.parametrize("names", ["", " , "])
def test_an_empty_list_of_attacks_is_refused_and_does_not_mean_all(names: str, monkeypatch) -> None:
    with pytest.raises(UserError, match="names no attack"):
        command_output(monkeypatch, "--algorithm", "fedmf", "--attacks", names)


def test_the_settings_of_attacks_are_listed_by_name() -> None:
    command = pytest.importorskip("fedrecplus.cli.settings")
    assert ("attack", "two-models") in {(kind, name) for kind, name, _ in command.describe_attacks("attack")}
    (only,) = command.describe_attacks("attack.two-models")
    assert only[2].name == "models"
    with pytest.raises(UserError, match="two-modls"):
        list(command.describe_attacks("attack.two-modls"))


OUTSIDE_MODEL = '''"""One factor and no word about what its uploads show."""
import numpy as np
from fedrecplus.arrays import rows_of
from fedrecplus.parts.model import Model, Trained
from fedrecplus.parts.tree import Leaf
from fedrecplus.settings import Settings

class Plain(Model[Settings]):
    def tree(self): return {"V": Leaf.table(2)}
    def start_items(self, seed, items, public): return np.ones((items, 2)) * [1.0, 0.5]
    def item_columns(self, V, public): return V
    def fold_in(self, X, items, ratings, public): return np.stack([self.mean(items, ratings), 0 * ratings.sum(-1)], -1)
    def mean(self, items, ratings): return ratings.sum(-1) / np.maximum((items >= 0).sum(-1), 1)
    def local_training(self, device, rows, broadcast):
        e = rows.ratings - self.mean(rows.items, rows.ratings)[..., None] * rows_of(broadcast.V, rows.items)[..., 0]
        return Trained(device.U, 0.01 * e[..., None] * np.array([1.0, 0.5]))
'''
OUTSIDE_RULE = '''"""The client's mean, undeclared."""
import numpy as np
from fedrecplus.parts.virtual_ratings import FillSettings, VirtualRatings

class Mean(VirtualRatings[FillSettings]):
    def fill(self, items, device, broadcast, predict):
        mean = np.where(device.items >= 0, device.ratings, 0).sum(-1) / np.maximum((device.items >= 0).sum(-1), 1)
        return mean[..., None] + np.zeros(items.shape)
'''


@pytest.fixture
def outside(tmp_path: Path, package_of: Callable[..., None]) -> Path:
    """An attack, a model and a rule of virtual ratings of somebody else."""
    package_of("somebody", sizes=FILES["my_attack"].lstrip(), plain=OUTSIDE_MODEL, mean=OUTSIDE_RULE)
    return tmp_path


def test_an_attack_from_outside_is_one_file_with_its_own_option(outside: Path, monkeypatch) -> None:
    name = "somebody.sizes"
    (plain,) = rows_of(small("fedrec"), AuditExtent(3, 5, (name,)))
    (turned,) = rows_of(small("fedrec"), AuditExtent(3, 5, (name,), {name: {"sign": -1}}))
    assert plain["attack"] == name
    assert plain["auc"] != 0.5
    assert turned["auc"] == pytest.approx(1.0 - plain["auc"])
    config = outside / "mine.toml"
    config.write_text(dumps(small("fedrec")))
    chosen = ["--algorithm", str(config), "--attacks", name, "--attack-set", f"{name}.sign=-1"]
    (row,) = command_json(outside, monkeypatch, *chosen)["rows"]
    assert row["auc"] == pytest.approx(turned["auc"])
    with pytest.raises(UserError, match="sign"):
        _ = AuditExtent(attacks=(name,), options={name: {"sign": 7}}).chosen


def test_a_model_that_declares_nothing_is_attacked_through_its_own_training(outside: Path) -> None:
    config = assign(preset("fedrec"), ["model.rule=somebody.plain", "server.rounds=6"])
    rows = rows_of(config, AuditExtent(3, 5, ("one-round", "inversion", "u-step")))
    assert all("declares no `attacker`" in row["note"] for row in rows)
    found = {row["attack"]: row for row in rows}
    assert found["inversion"]["rating_exact"] > 0.9
    assert found["one-round"]["auc"] > 0.55


def test_a_rule_that_declares_nothing_is_attacked_under_the_best_assumption(outside: Path) -> None:
    (known,) = rows_of(small("fedrec"), AuditExtent(3, 8, ("one-round",)))
    (unknown,) = rows_of(small("fedrec", "virtual_ratings.rule=somebody.mean"), AuditExtent(3, 8, ("one-round",)))
    assert unknown["rmse"] == pytest.approx(known["rmse"])
    assert "assumptions" in unknown["note"]
    assert known["note"] == ""
    assert unknown["auc"] >= known["auc"] - 0.01


def test_the_command_audits_every_size_of_cohort(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(dumps(small("fedrec+secure", *TAKEN_APART)))
    content = command_json(tmp_path, monkeypatch, "--algorithm", str(file), "--cohort", "12,40", "--attacks", "unmix")
    few, many = content["rows"]
    assert (few["scheme"], many["scheme"]) == ("mine, 12 people", "mine, 40 people")
    assert few["found"] == few["users"] == 5
    assert many["found"] < 5
    for cohort in ("0", "ten", ",", "5000"):
        with pytest.raises(UserError, match="--cohort"):
            command_json(tmp_path, monkeypatch, "--algorithm", str(file), "--cohort", cohort, "--attacks", "unmix")


def test_the_terminal_has_the_verdict_first_and_fits_80_columns(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(dumps(small("fedrec+secure", *TAKEN_APART)))
    chosen = ["--algorithm", str(file), "--cohort", "12", "--rounds", "3", "--users", "5"]
    chosen += ["--attacks", "sums,unmix,knows-some,knows-others,statistics"]
    text = command_output(monkeypatch, *chosen)
    lines = [one for one in text.splitlines() if not one.endswith("done")]
    assert lines[0].startswith("mine, 12 people")
    assert "reads" in " ".join(lines[:4])
    assert "unmix" in " ".join(lines[:4])
    assert "some ratings" in text
    assert max(map(len, lines)) <= 80
    assert "worst tenth" not in text, "which is a detail"


def test_a_verdict_counts_what_reads_and_not_what_is_blind() -> None:
    rows = rows_of(small("fedrec+secure", "model.interaction_factors=4"), replace(QUICK, attacks=("sums", "unmix")))
    sentence = verdict_sentence(rows)
    assert "learns nothing that 1 attack " in sentence
    assert "1 of 2 attacks are blind" in sentence
    assert "AUC 1.000" in verdict_sentence(rows_of(small("fedmf")))


def test_somebody_elses_ratings_stand_in_one_persons_place() -> None:
    ratings = small_town()
    changed = exchanged_ratings(ratings, 3, 8)
    for client in range(ratings.clients):
        for found, expected in zip(changed.of(client), ratings.of(8 if client == 3 else client), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_statistics_give_a_person_away_and_those_of_the_other_world_do_not() -> None:
    """Exact counts less everybody else's name each rated item; where the person was never counted, they name none."""
    settings = ["model.factors=4", "server.rounds=4", "channel.rule=sums", "aggregation.weigh_on=client"]
    config = assign(preset("fedmf"), settings)
    extent = AuditExtent(rounds=2, users=4, attacks=("statistics", "sums"), control="worlds")
    rows = {row["attack"]: row for row in rows_of(config, extent)}
    assert all(row["control"] == "worlds" for row in rows.values())
    assert rows["statistics"]["auc"] == 1.0
    assert rows["statistics"]["auc_control"] < 0.7
    assert abs(rows["sums"]["auc"] - rows["sums"]["auc_control"]) < 0.15
