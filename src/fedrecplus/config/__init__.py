"""A training's settings: a tagged union of the parts' own, presets, and their TOML form."""

from fedrecplus.config.change import (
    SECTIONS,
    assign,
    change,
    describe,
    from_tables,
    settings_in,
    to_tables,
    value_of,
)
from fedrecplus.config.check import LEAKY, check
from fedrecplus.config.config import (
    CohortSettings,
    Config,
    EvaluationSettings,
    GeneralSettings,
    ServerSettings,
)
from fedrecplus.config.protection import (
    check_channel,
    with_budget,
    with_channel,
)
from fedrecplus.config.toml import (
    dumps,
    load_config,
    loads,
    preset,
    preset_summary,
    presets,
    refuse_outside,
)

__all__ = [
    "LEAKY",
    "SECTIONS",
    "CohortSettings",
    "Config",
    "EvaluationSettings",
    "GeneralSettings",
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
    "refuse_outside",
    "settings_in",
    "to_tables",
    "value_of",
    "with_budget",
    "with_channel",
]
