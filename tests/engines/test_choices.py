"""Kernels of models with a statistic give what the reference gives, in every channel."""

from __future__ import annotations

import pytest

from fedrecplus.testing import assert_engines_agree, small_ratings
from fedrecplus.testing.example import example_config

CHANNELS = {
    "clear": (),
    "sums": ("channel.rule=sums",),
    "secure": (
        "channel.rule=secure",
        "channel.least_cohort=5",
        "channel.fewest_contributors=1",
        "channel.bound=64",
        "channel.weights=sent",
    ),
    "secure, 16 bits": (
        "channel.rule=secure",
        "channel.bits=16",
        "channel.bound=40",
        "channel.least_cohort=5",
        "channel.weights=sent",
    ),
}
WEIGHTS = {
    "uniform": (),
    "wasserstein": ("aggregation.rule=wasserstein", "aggregation.weigh_on=client", "aggregation.temperature=0.4"),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("model", ["ials", "joint", "fcf"])
def test_engines_agree(model: str, channel: str, weights: str) -> None:
    changes = (f"model.rule={model}", "pseudo_items.rule=none", *CHANNELS[channel], *WEIGHTS[weights])
    assert_engines_agree(example_config(*changes), small_ratings(clients=20), rounds=2)
