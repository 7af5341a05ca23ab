"""A rule in a file of one's own is trained by both engines, found by tools, and refused where a stranger names it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, assign, dumps, load_config, loads
from fedrecplus.data import split
from fedrecplus.errors import UserError
from fedrecplus.parts import Aggregation, choices, part
from fedrecplus.testing import example_config, small_ratings
from fedrecplus.training import Recommender, train
from tests.outside.my_rules import OPTIONS

KINDS = [name.removeprefix("my_") for name in OPTIONS]
TRAINING, TEST = split(small_ratings(clients=40), 0)


def config_with(kind: str, *more: str) -> Config:
    mine = [f"{kind}.rule=my_rules.my_{kind}", f"{kind}.{OPTIONS[f'my_{kind}']}"]
    return example_config(*mine, "server.rounds=3", "evaluation.every=3", *more)


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_is_trained_by_both_engines_and_read_back_only_if_allowed(kind: str, tmp_path: Path) -> None:
    rule = f"my_rules.my_{kind}"
    runs = [
        train(TRAINING, TEST, config_with(kind, f"engine={name}"), out=tmp_path / name)
        for name in ("reference", "fast")
    ]
    models = [run.recommender for run in runs]
    np.testing.assert_allclose(models[1].model.V, models[0].model.V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(models[1].clients.W, models[0].clients.W, rtol=0, atol=1e-9)
    assert runs[1].rmse == pytest.approx(runs[0].rmse, abs=1e-9)
    default = train(TRAINING, TEST, example_config(f"{kind}.rule={rule}", "server.rounds=3"))
    assert np.abs(default.recommender.model.V - models[1].model.V).max() > 1e-9, "its option does nothing"
    with pytest.raises(UserError, match="would run code") as error:
        Recommender.load(tmp_path / "fast")
    assert "allow" in error.value.remedy
    again = Recommender.load(tmp_path / "fast", allow=[rule])
    assert again.top_items(1, 3) == models[1].top_items(1, 3)


def test_every_kind_is_chosen_and_set_by_the_command_line(tmp_path: Path) -> None:
    """All of them in one training."""
    chosen = [f"--set={kind}.rule=my_rules.my_{kind}" for kind in KINDS]
    chosen += [f"--set={kind}.{OPTIONS[f'my_{kind}']}" for kind in KINDS] + ["--set=server.rounds=2"]
    data = ["--dataset", "synthetic:clients=30,items=40,ratings_per_client=8"]
    assert exit_code_of(["train", "--algorithm", "fedrec", *data, *chosen, "--out", str(tmp_path / "run")]) == 0
    config = load_config(tmp_path / "run" / "config.toml")
    assert [getattr(config, kind).rule for kind in KINDS] == [f"my_rules.my_{kind}" for kind in KINDS]
    assert config.pseudo_items.settings.stride == 3
    assert json.loads((tmp_path / "run" / "result.json").read_text())["rmse"] > 0


IMPORT = """from fedrecplus.parts.virtual_ratings import VirtualRatings
from fedrecplus.settings import Settings"""
MINE = "class Mine(VirtualRatings):\n    def fill(self, items, *_): ...\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def fill(): pass", "it has no class that derives from VirtualRatings"),
        (f"{IMPORT}\nclass Mine(VirtualRatings): pass", "its Mine has no fill"),
        (f"{IMPORT}\n{MINE}\nclass Other(Mine): pass", "Mine and Other are 2 of them"),
        ("import nowhere_to_be_found", "can't be imported: ModuleNotFoundError"),
        (f"{IMPORT}\nclass Mine(VirtualRatings[int]): pass", "its Settings lack what every virtual rating rule has"),
        (f"{IMPORT}\nclass Mine(VirtualRatings[Settings]): pass", "its Settings lack"),
    ],
)
def test_a_module_that_is_no_part_is_refused_when_it_is_chosen(
    text: str, problem: str, my_rules: Path, request: pytest.FixtureRequest
) -> None:
    name = f"broken_{abs(hash(request.node.name))}"
    (my_rules / f"{name}.py").write_text(text)
    (my_rules / "my_rules" / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    with pytest.raises(UserError, match=problem):
        assign(Config(), [f"virtual_ratings.rule=my_rules.{name}"])


def test_a_rule_without_settings_has_those_of_its_kind(my_rules: Path) -> None:
    (my_rules / "my_rules" / "bare.py").write_text(f"{IMPORT}\n{MINE}")
    importlib.invalidate_caches()
    config = assign(Config(), ["virtual_ratings.rule=my_rules.bare", "virtual_ratings.rounding=nearest"])
    assert config.virtual_ratings.settings.rounding == "nearest"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with an entry point, as pip would have left it."""
    info = tmp_path / "my_distribution-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-distribution\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fedrecplus.aggregation]\nfew-rows = my_rules.my_aggregation\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    part._installed.cache_clear()
    yield
    monkeypatch.undo()
    part._installed.cache_clear()
    part.part_class.cache_clear()


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_names_of_its_own() -> None:
    assert "few-rows" in choices(Aggregation)
    config = assign(example_config("server.rounds=2"), ["aggregation.rule=few-rows", "aggregation.power=1"])
    assert train(TRAINING, None, config).result["fit"]["rmse"] > 0
    with pytest.raises(UserError, match="did you mean 'few-rows'"):
        assign(config, ["aggregation.rule=few-row"])
    with pytest.raises(UserError, match="would run code"):
        loads(dumps(config), allow=())
    assert loads(dumps(config), allow=["few-rows"]) == config
