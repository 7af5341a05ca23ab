"""Which settings may travel: what a deployment can run, what a node lets in, and what stays fixed for a model."""

from __future__ import annotations

import json
from collections.abc import Collection

from fedrecplus.config import Config, to_dict
from fedrecplus.deploy.wire.reply import Refusal
from fedrecplus.errors import UserError
from fedrecplus.parts import choices

_RULES = (
    ("pseudo_items", "rule", "pseudo_items"),
    ("pseudo_items", "encoder", "encoders"),
    ("virtual_ratings", "rule", "virtual_ratings"),
    ("aggregation", "rule", "aggregation"),
    ("server", "step", "server_steps"),
)
"""section and name of each setting that names a rule, and the folder of the built-in ones"""


def check_rules(config: Config, allowed: Collection[str] = ()) -> None:
    """Refuse a rule that is neither built in nor allowed by the node's owner (``node join --allow-rule``).

    A name with a dot is an import path, so a server could make a node run any code that is installed on it. Call this
    on a received config before anything looks its rules up.
    """
    for section, option, folder in _RULES:
        name = getattr(getattr(config, section), option)
        if name not in choices(folder) and name not in allowed:
            raise Refusal(
                "rule", f"{section}.{option} = {name[:80]!r} is not built in; `node join --allow-rule` lets it in"
            )


def check_deployable(config: Config) -> Config:
    """Refuse what only a simulation can do."""
    if config.trainer != "federated":
        raise UserError("training in one place needs no deployment", "choose a federated preset")
    if config.aggregation.denoising > 0:
        raise UserError(
            "denoising clients (FedRec++) need messages between clients, which a deployment doesn't carry",
            "set aggregation.denoising=0 or choose another preset",
        )
    if config.client.dropout > 0:
        raise UserError("client.dropout simulates what a deployment has anyway", "set client.dropout=0")
    if config.aggregation.covariance == "full":
        raise UserError("aggregation.covariance=full is for simulation", "set aggregation.covariance=diagonal")
    return config


def fixed_settings(config: Config) -> str:
    """The settings that must not change while a model is trained, as text; the number of rounds may."""
    tables = to_dict(config)
    del tables["evaluation"], tables["server"]["rounds"]
    return json.dumps(tables, sort_keys=True)
