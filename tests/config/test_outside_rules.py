"""Texts that came from somebody else import nothing that wasn't allowed, however they name it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedrecplus.config import Config, assign, check, loads
from fedrecplus.errors import UserError


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that would show that it was imported."""
    (tmp_path / "spy_rule.py").write_text("def select(count, device, broadcast, settings):\n    return []\n")
    (tmp_path / "spies.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "spy_rule", raising=False)
    return "spy_rule"


@pytest.mark.parametrize(
    "text",
    [
        '[pseudo_items]\nrule = "x.spy_rule"',
        'pseudo_items = {rule = "x.spy_rule"}',
        'pseudo_items.rule = "x.spy_rule"',
        '"pseudo_items.rule" = "x.spy_rule"',
        'extends = "fedrec+"\n"pseudo_items.rule" = "x.spy_rule"',
    ],
)
def test_no_way_of_writing_a_rule_imports_it(text: str, spy: str) -> None:
    for rule in ("x.spy_rule", spy):
        with pytest.raises(UserError):
            loads(text.replace("x.spy_rule", rule), "a downloaded run", allow=())
    assert spy not in sys.modules


def outside_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> str:
    folder = tmp_path / f"own_{name}"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "rule.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"own_{name}.rule"


def test_weights_that_look_at_uploads_need_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings

class Shy(WeightedAggregation[WeightSettings]):
    def weight(self, items, delta, broadcast):
        return 1.0 / (1e-9 + float((delta**2).sum()))
"""
    rule = outside_rule(tmp_path, monkeypatch, "shy", source)
    config = assign(Config(), [f"aggregation.rule={rule}", "channel.rule=sums"])
    with pytest.raises(UserError, match="needs single uploads"):
        check(config)
    check(assign(config, ["aggregation.weigh_on=client"]))


def test_a_rule_s_own_options_may_have_the_names_of_another_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings
from fedrecplus.settings import Annotated, text

class Settings(WeightSettings):
    covariance: Annotated[str, text("mine")] = "other"
    global_step: Annotated[str, text("mine")] = "mean"

class Same(WeightedAggregation[Settings]):
    def weight(self, items, delta, broadcast):
        return 1.0
"""
    config = check(assign(Config(), [f"aggregation.rule={outside_rule(tmp_path, monkeypatch, 'same', source)}"]))
    assert config.aggregation.covariance_kind == "none"


def test_a_joining_rule_need_not_say_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
import numpy as np
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.settings import Settings

class Joining(RobustAggregation[Settings]):
    def aggregate(self, uploads, broadcast):
        return np.zeros(broadcast.V.shape)
"""
    rule = outside_rule(tmp_path, monkeypatch, "joining", source)
    assert check(assign(Config(), [f"aggregation.rule={rule}"])).aggregation.needs_uploads
