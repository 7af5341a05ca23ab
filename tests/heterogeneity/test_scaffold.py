"""SCAFFOLD beside plain rounds: what it must not change, what it must, and its control variates by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.engines import engine_of, prepare, rounds
from fedrecplus.errors import UserError
from fedrecplus.experiments.heterogeneity.scaffold import ScaffoldEngine, require_plain_mf
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=25, items=30)
START = ["precision=float64", "model.factors=3", "model.learning_rate=0.05", "server.rounds=6"]


def tables(*changes: str, scaffold: bool) -> tuple[list[np.ndarray], ScaffoldEngine]:
    config = assign(Config(), [*START, *changes])
    engine = ScaffoldEngine(engine_of(config))
    run = rounds(engine if scaffold else engine.engine, prepare(RATINGS, config))
    return [state.server.V for state, _ in run], engine


def test_the_first_round_is_a_plain_one() -> None:
    """No client has a control variate yet."""
    with_it, without = (tables("model.local_epochs=4", scaffold=yes)[0] for yes in (True, False))
    np.testing.assert_allclose(with_it[0], without[0], rtol=0, atol=1e-12)
    assert np.abs(with_it[-1] - without[-1]).max() > 1e-6


def test_one_local_step_of_everybody_is_not_changed() -> None:
    """Corrections add up to zero over an item's raters."""
    with_it, without = (tables("model.local_epochs=1", scaffold=yes)[0] for yes in (True, False))
    np.testing.assert_allclose(with_it[-1], without[-1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("changes", [[], ["cohort.fraction=0.4"]])
def test_the_server_s_control_variate_is_the_mean_over_an_item_s_raters(changes: list[str]) -> None:
    _, engine = tables("model.local_epochs=3", *changes, scaffold=True)
    total = np.zeros_like(engine.mean)
    np.add.at(total, RATINGS.items, engine.own)
    np.testing.assert_allclose(engine.mean, total / np.maximum(RATINGS.item_counts(), 1)[:, None], rtol=0, atol=1e-12)


def test_what_it_is_not_for_is_refused() -> None:
    with pytest.raises(UserError, match="without pseudo items"):
        require_plain_mf(assign(Config(), ["pseudo_items.rule=random"]))
