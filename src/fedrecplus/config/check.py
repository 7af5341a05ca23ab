"""Settings that can't be together."""

from __future__ import annotations

from dataclasses import replace

from fedrecplus.config.config import Config
from fedrecplus.errors import UserError
from fedrecplus.parts import hidden_leaves
from fedrecplus.parts.aggregation import WeightedAggregation

LEAKY = " (leaky negatives)"
"""beside the name of every training whose model was told what it is tested on"""


def check(config: Config) -> Config:
    """The config, if it can be run; otherwise an error that says which setting to change.

    A part says itself what it can't be together with: its ``check_with`` gets the whole config.
    """
    for chosen in config.choices:
        chosen.check_with(config)
    if config.engine == "central" and config.channel.rule != Config().channel.rule:
        raise UserError(
            f"{config.algorithm} trains in one place: nothing is uploaded by channel.rule={config.channel.rule}",
            "leave --channel and channel.rule away, or choose a federated algorithm, such as fedmf",
        )
    aggregation = config.aggregation
    weighs = isinstance(aggregation, WeightedAggregation)
    if config.channel.VIEW != "uploads" and aggregation.needs_uploads:
        raise UserError(
            f"aggregation.rule={aggregation.rule} needs single uploads; channel.rule={config.channel.rule} shows none",
            "set aggregation.weigh_on=client, or channel.rule=clear"
            if weighs
            else "set aggregation.rule=uniform or channel.rule=clear",
        )
    hidden = hidden_leaves(config.model.tree())
    if hidden and config.channel.VIEW == "uploads" and not config.simulation_only:
        raise UserError(
            f"model.rule={config.model.rule} uploads {' and '.join(hidden)}, of which nobody may see one person's, and "
            f"channel.rule={config.channel.rule} shows the server single uploads",
            "set channel.rule=sums, or say that nobody's data is at stake: simulation_only=true, --simulation-only",
        )
    if config.model.dense_size and not weighs:
        raise UserError(
            f"aggregation.rule={aggregation.rule} compares rows of items, and model.rule={config.model.rule} has dense "
            "arrays besides",
            "set aggregation.rule=uniform",
        )
    if config.model.updates_items and weighs and aggregation.normalise != "item":
        raise UserError(
            f"model.rule={config.model.rule} weighs its own sums, not aggregation.normalise={aggregation.normalise}",
            "set aggregation.normalise=item or model.rule=mf",
        )
    if config.redraws and not config.refreshes:
        raise UserError(
            "pseudo items that are drawn anew each round can't keep their first virtual ratings",
            "set virtual_ratings.refresh=true or pseudo_items.redraw=false",
        )
    if config.model.leaks and LEAKY not in config.algorithm:
        return replace(config, algorithm=config.algorithm + LEAKY)
    return config
