"""On ML-100K, secure sums are as accurate as the same sums in the clear."""

from __future__ import annotations

import pytest

import fedrecplus as fr

TARGET = 0.0005


@pytest.mark.slow
def test_rings_keep_the_accuracy_of_plain_sums() -> None:
    training, test = fr.split(fr.load("ml-100k"), fold=0)
    errors = {}
    for name, changes in {
        "clear": (),
        "32": ("channel.rule=secure", "channel.weights=sent", "channel.fewest_contributors=1"),
        "16": ("channel.rule=secure", "channel.bits=16", "channel.bound=4", "channel.fewest_contributors=1"),
        "defaults": ("channel.rule=secure", "channel.bits=16", "channel.bound=4"),
    }.items():
        config = fr.assign(fr.preset("fedmf"), ["aggregation.rule=wasserstein", "aggregation.temperature=0.33",
                                                "aggregation.weigh_on=client", *changes])  # fmt: skip
        errors[name] = fr.train(training, test, config).rmse
    assert abs(errors["32"] - errors["clear"]) < 1e-5
    assert abs(errors["16"] - errors["clear"]) < TARGET
    assert abs(errors["defaults"] - errors["clear"]) < 2 * TARGET, "rows that fewer than six rated stay as they start"
