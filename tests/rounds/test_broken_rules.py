"""A rule that breaks its promise is named, in every engine, instead of training to wrong numbers."""

from __future__ import annotations

import types

import numpy as np
import pytest

from fedrecplus import parts
from fedrecplus.config import Config, assign
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=20)
BROKEN = {
    "one item whatever the count": ("pseudo_items", lambda count, device, broadcast, settings: np.array([0])),
    "rated items": ("pseudo_items", lambda count, device, broadcast, settings: device.items[:count]),
    "fractions": ("pseudo_items", lambda count, device, broadcast, settings: np.arange(count) + 0.5),
    "an item twice": ("pseudo_items", lambda count, device, broadcast, settings: np.zeros(count, np.int64)),
    "no number": ("aggregation", lambda items, delta, broadcast, settings: float("nan")),
    "less than nothing": ("aggregation", lambda items, delta, broadcast, settings: -1.0),
    "no upload": ("channel", lambda upload, secret, broadcast, settings: None),
}
FUNCTIONS = {"pseudo_items": "select", "aggregation": "weight", "channel": "protect"}


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_promise_is_named(case: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, function = BROKEN[case]
    module = types.ModuleType("broken.rule", "A rule that is wrong.")
    setattr(module, FUNCTIONS[kind], function)
    if kind == "channel":
        module.VIEW = "uploads"  # type: ignore[attr-defined]
    monkeypatch.setattr(parts, "_import_outside", lambda *_: module)
    parts._part.cache_clear()
    start = assign(Config(), [f"engine={engine}", "pseudo_items.rule=random", "model.factors=3", "server.rounds=1"])
    config = assign(start, [f"{kind}.rule=broken.rule"])
    try:
        problem = prepare(RATINGS, config)
        with pytest.raises(UserError, match=r"broken\.rule"):
            engine_of(config).round(problem, engine_of(config).start(problem))
    finally:
        parts._part.cache_clear()
