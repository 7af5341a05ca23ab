"""A rule that breaks its promise is named, in every engine, instead of training to wrong numbers."""

from __future__ import annotations

import types
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts import Part
from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings
from fedrecplus.parts.channel import Channel
from fedrecplus.parts.pseudo_items import PseudoItems, SetSettings
from fedrecplus.settings import Settings
from tests.small_data import small_ratings


def some(count: np.ndarray | int) -> np.ndarray:
    """As many numbers as are asked for, of one client or of many."""
    width = np.arange(np.max(count))
    return np.where(width < np.asarray(count)[..., None], width, -1)


RATINGS = small_ratings(clients=20)
BROKEN = {
    "one item whatever the count": ("pseudo_items", lambda self, count, device, broadcast: np.array([0])),
    "rated items": ("pseudo_items", lambda self, count, device, broadcast: device.items[..., : np.max(count)]),
    "fractions": ("pseudo_items", lambda self, count, device, broadcast: some(count) + 0.5),
    "an item twice": ("pseudo_items", lambda self, count, device, broadcast: 0 * some(count)),
    "no number": ("aggregation", lambda self, items, delta, broadcast: np.nan * delta[..., 0, 0]),
    "less than nothing": ("aggregation", lambda self, items, delta, broadcast: -1.0 - delta[..., 0, 0] ** 2),
    "nothing": ("aggregation", lambda self, items, delta, broadcast: 0.0 * delta[..., 0, 0]),
    "a weight for each row": ("aggregation", lambda self, items, delta, broadcast: np.ones(items.shape)),
    "no upload": ("channel", lambda self, upload, secret, broadcast: None),
}
BASES: dict[str, tuple[str, type[Part]]] = {
    "pseudo_items": ("select", PseudoItems[SetSettings]),
    "aggregation": ("weight", WeightedAggregation[WeightSettings]),
    "channel": ("protect", Channel[Settings]),
}


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_promise_is_named(case: str, engine: str) -> None:
    kind, function = BROKEN[case]
    name, base = BASES[kind]
    broken = types.new_class("Broken", (base,), exec_body=lambda body: body.update({name: function}))
    settings = [f"engine={engine}", "pseudo_items.rule=random", "model.factors=3", "server.rounds=1"]
    config = replace(assign(Config(), settings), **{kind: broken(rule="broken.rule")})
    problem = prepare(RATINGS, config)
    with pytest.raises(UserError, match=r"broken\.rule"):
        engine_of(config).round(problem, engine_of(config).start(problem))
