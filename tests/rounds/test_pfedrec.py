"""PFedRec: a local step is the gradient of its loss, and negatives are drawn on the device, outside its own data."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import check
from fedrecplus.device import every_item
from fedrecplus.errors import UserError
from fedrecplus.parts.model.pfedrec import PFedRec
from fedrecplus.testing import example_config, example_round

CHANGES = (
    "model.rule=pfedrec", "model.factors=3", "model.learning_rate=0.1", "model.item_learning_rate=2",
    "pseudo_items.rule=none",
)  # fmt: skip


def test_a_step_is_that_of_the_logistic_loss_over_clicks_and_drawn_negatives() -> None:
    problem, message, devices = example_round(*CHANGES)
    model = problem.config.model
    assert isinstance(model, PFedRec)
    for device in devices[:4]:
        rows = every_item(device, len(message.V))
        used = model.drawn(device, rows, message) > 0
        assert used[device.items].all()
        assert used.sum() > len(device.items), "some are not clicked"
        w, b, n = device.U[:-1], device.U[-1], used.sum()
        gradient, delta = np.zeros(4), np.zeros_like(message.V)
        for item in np.flatnonzero(used):
            error = float(item in device.items) - 1 / (1 + np.exp(-(message.V[item] @ w + b)))
            gradient += error * np.append(message.V[item], 1.0) / n
        after = device.U + 0.1 * gradient
        for item in np.flatnonzero(used):
            error = float(item in device.items) - 1 / (1 + np.exp(-(message.V[item] @ after[:-1] + after[-1])))
            delta[item] = 2 * error * after[:-1]
        trained = model.local_training(device, rows, message)
        np.testing.assert_allclose(trained.U, after, atol=1e-12)
        np.testing.assert_allclose(trained.delta, delta, atol=1e-12)


def test_negatives_change_from_round_to_round_and_are_as_many_as_asked_for() -> None:
    problem, message, devices = example_round(*CHANGES, "model.negatives=1")
    model = problem.config.model
    assert isinstance(model, PFedRec)
    drawn, clicks = 0, 0
    for device in devices:
        rows = every_item(device, len(message.V))
        drawn += int(model.drawn(device, rows, message).sum()) - len(device.items)
        clicks += len(device.items)
    assert drawn == pytest.approx(clicks, rel=0.25)


def test_a_single_upload_names_the_clicks_and_is_refused() -> None:
    with pytest.raises(UserError, match="uploads E, of which nobody may see one person's"):
        check(example_config(*CHANGES, "simulation_only=false", "channel.rule=clear"))
