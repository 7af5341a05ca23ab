"""Every preset loads, is complete in TOML, and trains. A new file in config/presets/ is enrolled by being there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import (
    assign,
    check,
    dumps,
    from_tables,
    load_config,
    loads,
    preset,
    preset_summary,
    presets,
    to_tables,
)
from fedrecplus.errors import UserError
from fedrecplus.testing import assert_engines_agree, small_ratings
from tests.rounds.engines import run_rounds

PRESETS = presets()
FEDERATED = [name for name in PRESETS if preset(name).engine != "central"]
NAMED = {
    "pmf", "fedmf-vanilla", "fedmf", "fedrec", "fedrec-hf", "fedrec++", "fedrec+paper", "fedrec+", "fedrec+private",
}  # fmt: skip
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_presets_that_the_documents_name_are_there_and_say_what_they_are_for() -> None:
    assert set(PRESETS) >= NAMED
    for name in PRESETS:
        assert preset(name).algorithm == name
        assert len(preset_summary(name)) > 20
        assert check(preset(name)) == preset(name)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_a_file_and_the_file_is_complete(name: str) -> None:
    config = preset(name)
    text = dumps(config)
    assert loads(text) == config
    for other in presets():
        assert loads(f'extends = "{other}"\n{text}') == config
    assert from_tables(to_tables(config)) == config


@pytest.mark.parametrize("name", FEDERATED)
def test_a_preset_trains_in_both_engines_and_in_single_precision(name: str) -> None:
    config = preset(name)
    assert_engines_agree(config, rounds=2)
    single, double = (
        run_rounds(small_ratings(), replace(config, precision=precision), "fast", rounds=2)[-1].server.V
        for precision in ("float32", "float64")
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-2 * max(1.0, np.abs(double).max()))


def test_the_private_preset_keeps_what_the_audit_needs_kept() -> None:
    config = preset("fedrec+private")
    assert config.model.settings.user_step == "all"
    assert not config.pseudo_items.settings.redraw
    assert not config.virtual_ratings.settings.refresh
    assert config.virtual_ratings.settings.rounding != "none"


def test_the_paper_preset_is_algorithm_1() -> None:
    config = preset("fedrec+paper")
    assert (config.model.rule, config.model.settings.user_step, config.model.settings.batch_size) == ("mf", "all", 0)
    assert (config.pseudo_items.rule, config.pseudo_items.settings.redraw) == ("similar", True)
    assert (config.encoder.rule, config.virtual_ratings.rule) == ("identity", "nearest")
    assert (config.virtual_ratings.settings.refresh, config.virtual_ratings.settings.rounding) == (True, "none")
    weights = config.aggregation.settings
    assert (config.aggregation.rule, weights.normalise, weights.rows) == ("wasserstein", "cohort", "table")
    assert (weights.temperature, weights.bound, weights.global_step, weights.covariance) == (1.0, 0.0, "last", "none")
    assert (config.server_optimizer.rule, config.server.cooldown, config.channel.rule) == ("sgd", 0.0, "clear")


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("equal-*.toml")), ids=lambda file: file.stem)
def test_equal_settings_are_those_of_fedrec_plus_but_for_what_is_compared(file: Path) -> None:
    ours, theirs = to_tables(preset("fedrec+")), to_tables(load_config(file))
    compared = {"pseudo_items", "virtual_ratings", "aggregation"}
    assert {name for name in ours if ours[name] != theirs[name]} == {*compared, "algorithm"}
    assert theirs["pseudo_items"]["ratio"] == ours["pseudo_items"]["ratio"]
    assert theirs["aggregation"]["rule"] == "uniform"


def test_a_file_may_say_only_what_is_other_than_in_a_preset() -> None:
    own = loads('extends = "fedrec+"\n[server]\nrounds = 7\n[pseudo_items]\nratio = 3')
    assert own == assign(preset("fedrec+"), ["algorithm=custom", "server.rounds=7", "pseudo_items.ratio=3"])
    assert loads('extends = "fedrec+"\nalgorithm = "mine"').algorithm == "mine"
    for name in ('"fedrec*"', "3", "[]"):
        with pytest.raises(UserError, match=r"unknown preset in mine\.toml") as error:
            loads(f"extends = {name}", "mine.toml")
        assert "Known: biases, fcf, fedmf" in str(error.value)
