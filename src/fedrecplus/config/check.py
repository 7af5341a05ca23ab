"""Settings that can't be together."""

from __future__ import annotations

from fedrecplus.config.config import Config
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import WeightedAggregation


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
    how = config.aggregation
    weighs = isinstance(how, WeightedAggregation)
    if config.channel.VIEW != "uploads" and how.needs_uploads:
        raise UserError(
            f"aggregation.rule={how.rule} needs single uploads; channel.rule={config.channel.rule} shows none",
            "set aggregation.weigh_on=client, or channel.rule=clear"
            if weighs
            else "set aggregation.rule=uniform or channel.rule=clear",
        )
    if config.model.statistic_size and config.channel.VIEW == "uploads" and not config.simulation_only:
        raise UserError(
            f"model.rule={config.model.rule} uploads a statistic that gives one person's factors away, and "
            f"channel.rule={config.channel.rule} shows the server single uploads",
            "set channel.rule=sums, or say that nobody's data is at stake: simulation_only=true, --simulation-only",
        )
    if config.model.updates_items and weighs and how.normalise != "item":
        raise UserError(
            f"model.rule={config.model.rule} weighs its own sums, not aggregation.normalise={how.normalise}",
            "set aggregation.normalise=item or model.rule=mf",
        )
    if config.redraws and not config.virtual_ratings.settings.refresh:
        raise UserError(
            "pseudo items that are drawn anew each round can't keep their first virtual ratings",
            "set virtual_ratings.refresh=true or pseudo_items.redraw=false",
        )
    return config
