"""A model's small dense statistic is weighted and summed beside the rows, in every engine."""

from __future__ import annotations

import types

import numpy as np
import pytest

from fedrecplus import parts
from fedrecplus.config import Config, assign
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.engines import engine_of, message_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.model import mf
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=20)


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("own.counting", "mf that counts its clients' ratings.")
    module.__dict__.update({name: value for name, value in vars(mf).items() if not name.startswith("_")})

    def local_training(device, rows, broadcast, settings):
        return *mf.local_training(device, rows, broadcast, settings), np.array([len(device.items), 1.0])

    module.local_training = local_training  # type: ignore[attr-defined]
    module.statistic_size = lambda settings: 2  # type: ignore[attr-defined]
    monkeypatch.setattr(parts, "_import_outside", lambda *_: module)
    parts._part.cache_clear()
    yield
    parts._part.cache_clear()


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("weigh_on", ["server", "client"])
def test_it_is_summed_with_the_weights(engine: str, weigh_on: str) -> None:
    settings = ["model.rule=own.counting", "model.factors=3", f"engine={engine}", f"aggregation.weigh_on={weigh_on}"]
    config = assign(Config(), [*settings, "simulation_only=true"])
    problem, runner = prepare(RATINGS, config), engine_of(config)
    state, clients = runner.start(problem), np.arange(RATINGS.clients)
    sums, _, _ = runner.sums(problem, state.private, message_of(problem, state, clients), clients)
    np.testing.assert_allclose(sums.statistic, [len(RATINGS), RATINGS.clients])


def test_a_deployment_in_the_clear_refuses_it() -> None:
    with pytest.raises(UserError, match="statistic"):
        check_deployable(assign(Config(), ["model.rule=own.counting"]))
