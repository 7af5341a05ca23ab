"""A training's settings: a tagged union of the parts' own, presets, and their TOML form."""

from fedrecplus.config.budget import check_channel, with_budget
from fedrecplus.config.change import assign, change, describe, from_tables, settings_in, to_tables, value_of
from fedrecplus.config.channel import with_channel
from fedrecplus.config.check import check
from fedrecplus.config.config import CohortSettings, Config, EvaluationSettings, ServerSettings
from fedrecplus.config.toml import dumps, load_config, loads, preset, preset_summary, presets

__all__ = [
    "CohortSettings",
    "Config",
    "EvaluationSettings",
    "ServerSettings",
    "assign",
    "change",
    "check",
    "check_channel",
    "describe",
    "dumps",
    "from_tables",
    "load_config",
    "loads",
    "preset",
    "preset_summary",
    "presets",
    "settings_in",
    "to_tables",
    "value_of",
    "with_budget",
    "with_channel",
]
