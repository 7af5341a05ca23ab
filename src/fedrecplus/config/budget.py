"""A config for a privacy budget: the settings that suit it, in place of those of a training without noise."""

from __future__ import annotations

from fedrecplus.config.change import change
from fedrecplus.config.config import Config
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import suited

MECHANISMS = ("central", "distributed", "local")


def with_budget(config: Config, epsilon: float, delta: float, noise: str, clients: int) -> Config:
    """The config with a budget: model, rounds, clip and statistics as they suit so many clients.

    The channel stays if it shows sums alone; pseudo items go, since nobody sees rows that they could hide among.
    """
    if noise not in MECHANISMS:
        raise UserError(f"--noise {noise}: no such mechanism", f"choose one of {', '.join(MECHANISMS)}")
    source = "--epsilon"
    rules = {"privacy": noise, "model": "reconstruction", "aggregation": "uniform", "server_optimizer": "sgd"}
    if noise != "local":
        rules["pseudo_items"] = "none"
        if config.channel.part.VIEW != "sums":
            rules["channel"] = "sums"
    for kind, rule in rules.items():
        config = change(config, f"{kind}.rule", rule, source)
    if config.statistics.source == "participants":
        config = change(config, "statistics.source", "secure-sum", source)
    found = {**suited(epsilon, delta, clients), "privacy.epsilon": epsilon, "privacy.delta": delta}
    for path, value in found.items():
        config = change(config, path, value, source)
    return config
