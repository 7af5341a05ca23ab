"""Settings, presets and their TOML form."""

from fedrecplus.config.check import check
from fedrecplus.config.settings import Config
from fedrecplus.config.toml import dumps, load_config, loads, preset, preset_summary, presets
from fedrecplus.config.units import on_scale
from fedrecplus.config.values import assign, change, from_dict, to_dict

__all__ = [
    "Config",
    "assign",
    "change",
    "check",
    "dumps",
    "from_dict",
    "load_config",
    "loads",
    "on_scale",
    "preset",
    "preset_summary",
    "presets",
    "to_dict",
]
