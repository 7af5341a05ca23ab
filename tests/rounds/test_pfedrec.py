"""PFedRec: a local step is the gradient of its loss, and negatives are drawn on the device, outside its own data."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import check
from fedrecplus.device import every_item
from fedrecplus.errors import UserError
from fedrecplus.parts.model.pfedrec import PFedRec
from fedrecplus.testing import example_config, example_round

CHANGES = ("model.rule=pfedrec", "model.factors=3", "model.learning_rate=0.1", "pseudo_items.rule=none")


@pytest.mark.parametrize("batch_size", [0, 7])
def test_a_step_is_that_of_the_logistic_loss_over_a_batch_of_clicks_and_drawn_negatives(batch_size: int) -> None:
    problem, message, devices = example_round(*CHANGES, f"model.batch_size={batch_size}")
    model = problem.config.model
    assert isinstance(model, PFedRec)
    for device in devices[:4]:
        rows = every_item(device, len(message.V))
        used = model.drawn(device, rows, message).items.tolist()
        assert set(device.items) < set(used), "some are not clicked"
        after, V, size = device.U.copy(), message.V.copy(), batch_size or len(used)
        for first in range(0, len(used), size):
            batch = used[first : first + size]
            errors = [(item in device.items) - 1 / (1 + np.exp(-(V[item] @ after[:-1] + after[-1]))) for item in batch]
            after = after + 0.1 * np.mean([e * np.append(V[item], 1) for e, item in zip(errors, batch, strict=True)], 0)
            for item in batch:
                error = float(item in device.items) - 1 / (1 + np.exp(-(V[item] @ after[:-1] + after[-1])))
                V[item] += 8.0 * len(V) * error * after[:-1] / len(batch)
        trained = model.local_training(device, rows, message)
        np.testing.assert_allclose(trained.U, after, atol=1e-12)
        np.testing.assert_allclose(trained.delta, V - message.V, rtol=1e-9, atol=1e-9)


def test_lists_are_scored_with_the_device_s_own_table_where_it_keeps_one() -> None:
    problem, message, devices = example_round(*CHANGES, "model.table=own")
    model, device = problem.config.model, devices[0]
    assert isinstance(model, PFedRec)
    rows = every_item(device, len(message.V))
    trained = model.local_training(device, rows, message)
    tuned = message.V + trained.delta
    np.testing.assert_allclose(trained.U[4:].reshape(tuned.shape), tuned)
    X = model.item_columns(message.V + 1.0, problem.public)  # the server's table has moved on
    w = model.user_weights(trained.U, X, device.items, device.ratings, problem.public)
    z = model.list_weights(w, X, device.items, device.ratings, problem.public)
    np.testing.assert_allclose(model.scores(X, z, message.dense), tuned @ trained.U[:3] + trained.U[3])


def test_negatives_change_from_round_to_round_and_are_as_many_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, message, devices = example_round(*CHANGES)
    model = problem.config.model
    monkeypatch.setattr(type(model.settings), "negatives", 1.0)  # here are fewer items than four a click
    assert isinstance(model, PFedRec)
    drawn, clicks = 0, 0
    for device in devices:
        rows = every_item(device, len(message.V))
        drawn += len(model.drawn(device, rows, message).items) - len(device.items)
        clicks += len(device.items)
    assert drawn == pytest.approx(clicks, rel=0.25)


def test_a_single_upload_names_the_clicks_and_is_refused() -> None:
    with pytest.raises(UserError, match="uploads E, of which nobody may see one person's"):
        check(example_config(*CHANGES, "simulation_only=false", "channel.rule=clear"))
