"""Every preset loads, is complete in TOML, and trains. A new file in config/presets/ is enrolled by being there."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import assign, check, dumps, from_dict, loads, preset, preset_summary, presets, to_dict
from fedrecplus.errors import UserError
from fedrecplus.training.evaluation import Factors
from tests.rounds.engines import run_rounds
from tests.small_data import small_ratings

PRESETS = presets()
FEDERATED = [name for name in PRESETS if preset(name).trainer == "federated"]
NAMED = {
    "pmf", "fedmf-vanilla", "fedmf", "fedrec", "fedrec-hf", "fedrec++", "fedrec+paper", "fedrec+", "fedrec+private",
}  # fmt: skip
RATINGS = small_ratings()


def test_the_presets_that_the_documents_name_are_there() -> None:
    assert set(PRESETS) >= NAMED


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_knows_its_name_and_what_it_is_for(name: str) -> None:
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
    assert from_dict(to_dict(config)) == config


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown algorithm 'fedrec_plus'") as error:
        preset("fedrec_plus")
    assert "Known: fedmf," in error.value.remedy
    with pytest.raises(UserError, match=r"did you mean 'fedrec\+private'"):
        preset("fedrec+privat")


@pytest.mark.parametrize("name", FEDERATED)
def test_a_preset_trains_two_rounds_in_both_engines(name: str) -> None:
    config = assign(preset(name), ["precision=float64", "server.rounds=2"])
    reference = run_rounds(RATINGS, config, "reference", rounds=2)[-1]
    quick = run_rounds(RATINGS, config, "fast", rounds=2)[-1]
    for part, table in reference.arrays().items():
        assert np.isfinite(table).all(), part
        np.testing.assert_allclose(quick.arrays()[part], table, rtol=0, atol=1e-9, err_msg=part)
    single = run_rounds(RATINGS, config, "fast", rounds=2, dtype=np.float32)[-1]
    np.testing.assert_allclose(single.server.V, reference.server.V, rtol=0, atol=1e-2)


@pytest.mark.parametrize("name", [name for name in FEDERATED if preset(name).model.start == "constant"])
def test_a_preset_that_starts_near_the_ratings_is_better_after_ten_rounds(name: str) -> None:
    config = preset(name)
    if config.aggregation.normalise == "clients":
        # then η makes up for the number of clients, O(√(K·clients)), and the preset's is for a thousand
        config = assign(config, ["server.learning_rate=2"])
    states = run_rounds(RATINGS, config, "fast", rounds=10)
    before, after = (training_error(state) for state in (states[0], states[-1]))
    assert after < before


def training_error(state: object) -> float:
    factors = Factors(state.U, state.server.V, 0.0)  # type: ignore[attr-defined]
    errors = RATINGS.standard_values - factors.predict(RATINGS.client_of_rating, RATINGS.items)
    return float(np.sqrt((errors**2).mean()))


def test_the_private_preset_keeps_what_the_audit_needs_kept() -> None:
    config = preset("fedrec+private")
    assert config.client.u_step == "all"
    assert not config.pseudo_items.redraw
    assert not config.virtual_ratings.refresh
    assert config.virtual_ratings.rounding != "none" or config.virtual_ratings.rule == "nearest"
    assert config.prediction.factors == "refit"


def test_the_paper_preset_is_algorithm_1() -> None:
    config = preset("fedrec+paper")
    assert config.client.u_step == "all"
    assert config.client.batch_size == 0
    assert config.pseudo_items.rule == "similar"
    assert config.pseudo_items.redraw
    assert (config.aggregation.rule, config.aggregation.normalise) == ("wasserstein", "clients")
    assert (config.aggregation.temperature, config.aggregation.bound) == (1.0, 0.0)
    assert config.server.step == "plain"
