"""A training's settings: a tagged union of the parts' own, presets, and their TOML form."""

from fedrecplus.config.change import (
    SECTIONS as SECTIONS,
    assign as assign,
    change as change,
    describe as describe,
    flat as flat,
    from_tables as from_tables,
    settings_in as settings_in,
    to_tables as to_tables,
    value_of as value_of,
)
from fedrecplus.config.check import LEAKY as LEAKY, check as check
from fedrecplus.config.config import (
    Config as Config,
    EvaluationSettings as EvaluationSettings,
    GeneralSettings as GeneralSettings,
)
from fedrecplus.config.protection import (
    Budget as Budget,
    budget_of as budget_of,
    with_budget as with_budget,
    with_channel as with_channel,
)
from fedrecplus.config.toml import (
    dumps as dumps,
    load_config as load_config,
    loads as loads,
    preset as preset,
    preset_summary as preset_summary,
    presets as presets,
    refuse_outside as refuse_outside,
)
