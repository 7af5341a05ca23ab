"""Which trainings a cluster can run: those whose rounds are sums over shards."""

from __future__ import annotations

from fedrecplus.config import Config
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.channel import SummingChannel

INSIDE = ("fast", "cuda", "reference")


def check_runs_on_shards(config: Config) -> None:
    """Refuse what needs more of all clients than a sum; the error says why."""
    if config.cluster.engine not in INSIDE:
        raise unknown_name("cluster.engine", config.cluster.engine, INSIDE)
    rule, channel = config.aggregation, config.channel
    if isinstance(rule, RobustAggregation):
        raise UserError(
            f"engine=ray adds up shard by shard, and aggregation.rule={rule.rule} compares single uploads of everybody",
            "set engine=fast, or aggregation.rule=uniform or wasserstein",
        )
    if rule.against_mean:
        raise UserError(
            "engine=ray sees uploads once, and aggregation.global_step=mean weighs them by what they add up to",
            "set engine=fast, or aggregation.global_step=last",
        )
    if isinstance(channel, SummingChannel):
        raise UserError(
            f"engine=ray adds up shard by shard, and channel.rule={channel.rule} is a protocol of the whole cohort: "
            "its ring, its masks and who drops out depend on everybody",
            "set channel.rule=sums, which gives the same sums but for the ring's rounding, or engine=fast",
        )
    if channel.exchanges:
        raise UserError(
            f"engine=ray has clients in shards, and channel.rule={channel.rule} lets any two of them exchange messages",
            "set engine=fast, or channel.rule=sums",
        )
