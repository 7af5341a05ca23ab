"""Every model gives in torch what it gives in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrecplus.device import Device, Rows
from fedrecplus.parts import KINDS, built_in
from fedrecplus.testing.example import example_round

SIZES = {
    "ials": ("model.interaction_factors=4",),
    "joint": ("model.factors=3", "model.interaction_factors=4"),
    "biases": (),
}


def everything(rule: str, move: Any) -> list[Any]:
    """All that a device computes, of a batch of clients whose arrays were moved."""
    problem, message, devices = example_round(f"model.rule={rule}", *SIZES.get(rule, ("model.factors=4",)))
    model: Any = problem.config.model
    few = [device for device in devices if len(device.items) >= 4][:5]
    items, ratings = (np.stack([getattr(one, name)[:4] for one in few]) for name in ("items", "ratings"))
    items, ratings = items.copy(), ratings.copy()
    items[0, 2:], ratings[0, 2:] = -1, 0.0
    rows = (items, ratings, items >= 0)
    if model.ALL_ITEMS:
        every = np.tile(np.arange(len(message.V)), (len(few), 1))
        rated = (every[..., None] == items[:, None, :]).any(-1)
        rows = (every, 3.0 * rated, rated)
    own: Any = (np.array([one.client for one in few]), move(items), move(ratings), 1.0)
    secrets: Any = np.array([one.secret for one in few], np.uint64)
    device = Device(*own, move(np.stack([one.U for one in few])), secrets)
    tables = {name: move(np.array(getattr(message, name))) for name in ("V", "dense")}
    broadcast, known = replace(message, **tables), (move(items), move(ratings), problem.public)
    trained = model.local_training(device, Rows(*(move(array) for array in rows)), broadcast)
    X = model.item_columns(broadcast.V, problem.public)
    w = model.newcomer(X, broadcast.dense, *known)
    lists, predicted = model.list_weights(w, X, *known), model.predict(move(items), device, broadcast, 2)
    found = [*trained[:2], X, w, lists, predicted, *(trained.statistic[None] if model.statistic_size else ())]
    return [np.asarray(array) for array in found]


@pytest.mark.parametrize("rule", built_in(KINDS["model"]))
def test_a_model_gives_in_torch_what_it_gives_in_numpy(rule: str) -> None:
    torch = pytest.importorskip("torch")
    for one, other in zip(everything(rule, torch.from_numpy), everything(rule, lambda array: array), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
