"""A training's settings as they travel: the rules, and what differs from their defaults.

A setting that a later version adds is not told while it has its default, so that both versions understand each other
and name the same settings alike. A default that changes would change its meaning, so that takes another ``PROTOCOL``: a
test holds today's defaults against those that were written down with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Any

import tomli_w

from fedrecplus.config import Config, from_tables, loads, to_tables

_LONGEST_KEPT = 32 * 2**10
"""characters of settings that are kept as they were read"""


def told_settings(config: Config) -> dict[str, Any]:
    """Tables of the rules, and of what differs from what these rules bring by default.

    >>> from fedrecplus.config import change, preset
    >>> told_settings(change(preset("fedmf"), "server.rounds", 7))["server"]
    {'rounds': 7, 'cooldown': 0.5}
    >>> from_tables(told_settings(preset("fedrec+"))) == preset("fedrec+")
    True
    """
    default = _default_tables(tuple((chosen.kind, chosen.rule) for chosen in config.choices))
    told: dict[str, Any] = {}
    for name, value in to_tables(config).items():
        if not isinstance(value, Mapping):
            if value != default[name]:
                told[name] = value
        elif other := {key: one for key, one in value.items() if key == "rule" or one != default[name][key]}:
            told[name] = other
    return told


@cache
def _default_tables(rules: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """What rules bring by default."""
    return to_tables(from_tables({kind: {"rule": rule} for kind, rule in rules}))


def told_text(config: Config) -> str:
    """The same as TOML, which ``config.loads`` reads."""
    return tomli_w.dumps(told_settings(config))


def config_of_text(text: str, allowed_rules: Collection[str]) -> Config:
    """What ``told_text`` gave, read once for all stages and rounds: it took a fifth of a device's time for a sum.

    What is longer than any of ours is read, and not kept.
    """
    read = _read if len(text) <= _LONGEST_KEPT else _read.__wrapped__
    return read(text, tuple(allowed_rules))


@lru_cache(maxsize=4)
def _read(text: str, allowed_rules: tuple[str, ...]) -> Config:
    return loads(text, "the server's config", allow=allowed_rules)


@lru_cache(maxsize=8)
def fixed_settings(config: Config) -> str:
    """The settings that must not change while a model is trained, as text.

    The number of rounds may, unless a budget is spent: its noise is calibrated to the rounds it began with.
    """
    tables = told_settings(config)
    tables.pop("evaluation", None)
    if config.privacy.rule == "none":
        tables.get("server", {}).pop("rounds", None)
    return json.dumps({name: told for name, told in tables.items() if told != {}}, sort_keys=True)
