"""A model's small dense statistic is weighted and summed beside the rows, in every engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.device import Device, Rows
from fedrecplus.engines import engine_of, message_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.model import Trained
from fedrecplus.parts.model.mf import Mf
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=20)


class Counting(Mf):
    """mf that counts its clients' ratings."""

    def tree(self) -> dict[str, Leaf]:
        return {**super().tree(), "counts": Leaf.statistic(2)}

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        rated = (device.items >= 0).sum(-1)
        statistic = np.stack([rated, np.ones_like(rated)], axis=-1).astype(float)
        return super().local_training(device, rows, broadcast)._replace(statistic=statistic)


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("weigh_on", ["server", "client"])
def test_it_is_summed_with_the_weights(engine: str, weigh_on: str) -> None:
    settings = ["model.factors=3", f"engine={engine}", f"aggregation.weigh_on={weigh_on}"]
    config = assign(Config(), [*settings, "simulation_only=true"])
    config = replace(config, model=Counting(config.model.settings))
    problem, runner = prepare(RATINGS, config), engine_of(config)
    state, clients = runner.start(problem), np.arange(RATINGS.clients)
    sums, _, _ = runner.sums(problem, state.private, message_of(problem, state, clients), clients)
    np.testing.assert_allclose(sums.statistic, [len(RATINGS), RATINGS.clients])


def test_a_deployment_in_the_clear_refuses_it() -> None:
    with pytest.raises(UserError, match="beside its rows"):
        check_deployable(Config(model=Counting()))
