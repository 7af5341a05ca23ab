"""What the panel "What leaves" needs to know: each preset's parts, and which item table its client step can run at.

A preset runs at this run's V where the run's model has the table that the preset's model trains. Other runs may be laid
beside it, for presets with another model; a preset without any table is named, and said to have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrecplus.audit import assumptions
from fedrecplus.config import Config, change, preset
from fedrecplus.errors import UserError
from fedrecplus.parts import Part
from fedrecplus.settings import constants_of
from fedrecplus.training import SharedModel

SHOWN = ("fedmf", "fedrec", "fedrec++", "fedrec+paper", "fedrec+", "fedrec+private", "fedrec+secure")
"""presets with a tab, from no protection to only sums"""


def tables_beside(model: SharedModel, beside: Sequence[SharedModel]) -> list[SharedModel]:
    """This run's model, and those of runs over the same items."""
    for other in beside:
        if not np.array_equal(other.item_ids, model.item_ids):
            raise UserError(
                f"a run of {other.config.algorithm} has other items than the run of {model.config.algorithm}",
                "lay runs of the same data beside each other",
            )
    return [model, *beside]


def facts_of(tables: Sequence[SharedModel]) -> list[dict[str, Any]]:
    """Every tab: the presets, with a run's own settings where it is a run of that preset, and runs of none."""
    own = {table.config.algorithm: table.config for table in reversed(tables)}
    configs = [own.get(name) or with_columns_of(preset(name), tables[0].config) for name in SHOWN]
    configs += [config for name, config in own.items() if name not in SHOWN]
    return [_facts(config, tables, config.algorithm == tables[0].config.algorithm) for config in configs]


def with_columns_of(config: Config, run: Config) -> Config:
    """The preset with as many factors as the run's V has, where that is what its model trains, in columns of its own.

    ``joint`` has the table of ``reconstruction`` as its first columns.
    """
    if (config.model.rule, run.model.rule) != ("reconstruction", "joint"):
        return config
    return change(config, "model.factors", _factors(run))


def _facts(config: Config, tables: Sequence[SharedModel], own: bool) -> dict[str, Any]:
    table = table_for(config, tables)
    assumed = assumptions(config)[0]
    of = config.model.attacker()
    return {
        "name": config.algorithm,
        "own": own,
        "table": None if table is None else {"number": table[0], "from": table[1], "to": table[2]},
        "trained_by": tables[table[0]].config.algorithm if table else "",
        "round": tables[table[0]].config.server.rounds if table else 0,
        "columns": config.model.columns,
        "model": _choice(config.model),
        "pseudo_items": _choice(config.pseudo_items),
        "virtual_ratings": _choice(config.virtual_ratings),
        "encoder": _choice(config.encoder),
        "channel": _choice(config.channel),
        "view": config.channel.VIEW,
        "hides_rows": config.hides_rows,
        "needs_features": config.needs_features,
        "weighs_on_client": config.aggregation.weighs_on_client,
        "ratio": config.pseudo_items.ratio if config.hides_rows else 0.0,
        "attacker": {
            "popularity": assumed.pseudo_items.popularity,
            "residual": assumed.virtual_ratings.residual,
            "fitted": of.fitted if of else None,
            "over": of.over if of else None,
        },
    }


def table_for(config: Config, tables: Sequence[SharedModel]) -> tuple[int, int, int] | None:
    """The first table that the config's model can step from: its number and columns."""
    wanted = config.model.columns
    for number, table in enumerate(tables):
        has = table.config.model.rule
        same = has == config.model.rule and table.V.shape[1] == wanted
        if same or (has == "joint" and config.model.rule == "reconstruction" and _factors(table.config) == wanted):
            return number, 0, wanted
    return None


def _factors(config: Config) -> int:
    tree = config.model.tree()
    return tree["V"].size if "V" in tree else 0


def _choice(choice: Part[Any]) -> dict[str, Any]:
    return {"rule": choice.rule, "options": {**constants_of(type(choice.settings)), **choice.values}}
