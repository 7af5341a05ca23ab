"""The parts from outside, as settings, and the ways that each is run in."""

from __future__ import annotations

from fedrecplus.config import Config
from fedrecplus.testing import example_config

SUMS = ("channel.rule=sums", "simulation_only=false")
PARTS = {
    "neural": ("model.rule=my_rules.my_neural", "model.factors=4", "model.learning_rate=0.3", *SUMS),
    "pseudo_items": ("pseudo_items.rule=my_rules.my_pseudo_items", "pseudo_items.stride=3"),
    "aggregation": ("aggregation.rule=my_rules.my_aggregation", "aggregation.power=1"),
    "channel": ("channel.rule=my_rules.my_channel", "channel.decimals=2"),
}
"""an attack is run by the audit alone"""
SECURE = (
    "channel.rule=secure", "channel.least_cohort=3", "channel.fewest_contributors=1", "channel.demonstration=true",
    "channel.cryptography=computed", "channel.bits=32",
)  # fmt: skip
BUDGET = ("privacy.rule=central", "privacy.clip=1", "privacy.delta=1e-4", "statistics.source=secure-sum")
WAYS: dict[str, tuple[str, ...]] = {
    "numpy": ("engine=reference",),
    "fast": ("engine=fast",),
    "secure sums": (*SECURE, "aggregation.weigh_on=client"),
    "noise for people": (*BUDGET, "channel.rule=sums", "pseudo_items.rule=none"),
}
"""those that take no process of their own"""


def config_of(part: str, *more: str) -> Config:
    """The example's training with one part from outside; its rule stays where a way has another of its kind."""
    own = PARTS[part]
    chosen = {each.partition("=")[0] for each in own if "my_rules" in each}
    way = [each for each in more if each.partition("=")[0] not in chosen]
    rules = {each.partition("=")[0] for each in way if ".rule=" in each}
    return example_config(*(each for each in own if each.partition("=")[0] not in rules), *way)
