"""Settings that can't be together."""

from __future__ import annotations

from fedrecplus.config.config import Config
from fedrecplus.errors import UserError


def check(config: Config) -> Config:
    """The config, if it can be run; otherwise an error that says which setting to change."""
    for chosen in config.choices:
        if chosen.part.has("check"):
            chosen.part.check(chosen.options)
    how, channel = config.aggregation, config.channel.part
    weighs = how.part.has("weight")
    on_client = weighs and how.options.weigh_on == "client"
    if on_client and getattr(how.options, "global_step", "last") == "mean":
        raise UserError(
            "a client can't weigh itself against this round's mean, which it doesn't know",
            "set aggregation.global_step=last or aggregation.weigh_on=server",
        )
    if channel.VIEW == "sums" and config.needs_uploads:
        remedy = "set aggregation.weigh_on=client and aggregation.covariance=none, or channel.rule=clear"
        raise UserError(
            f"aggregation.rule={how.rule} needs single uploads; channel.rule={config.channel.rule} shows sums alone",
            remedy if weighs else "set aggregation.rule=uniform or channel.rule=clear",
        )
    if channel.has("exchange") and (how.rule != "uniform" or on_client):
        raise UserError(
            f"channel.rule={config.channel.rule} needs uniform weights, given by the server, not {how.rule}",
            "set aggregation.rule=uniform and aggregation.weigh_on=server, or channel.rule=clear",
        )
    if config.model.part.has("update_items") and weighs and how.options.normalise != "item":
        raise UserError(
            f"model.rule={config.model.rule} weighs its own sums, not aggregation.normalise={how.options.normalise}",
            "set aggregation.normalise=item or model.rule=mf",
        )
    batch_size = getattr(config.model.options, "batch_size", 0)
    if getattr(how.options, "covariance", "none") != "none" and how.options.batch_size != batch_size:
        raise UserError(
            f"aggregation.batch_size = {how.options.batch_size} is not the model's, {batch_size}",
            f"set aggregation.batch_size={batch_size}",
        )
    redraws = getattr(config.pseudo_items.options, "redraw", False)
    if redraws and not config.virtual_ratings.options.refresh:
        raise UserError(
            "pseudo items that are drawn anew each round can't keep their first virtual ratings",
            "set virtual_ratings.refresh=true or pseudo_items.redraw=false",
        )
    return config
