"""What workers are told once: settings, public things, and where each shard is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import ShardedRatings, of_clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.ray.worker import FileShard, HeldShard, Setup, told_order
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.channel import SummingChannel

INSIDE = ("fast", "cuda", "reference")


def first_clients(problem: Problem) -> list[int]:
    """The number of each shard's first client."""
    ratings = problem.ratings
    if isinstance(ratings, ShardedRatings):
        return [shard.first for shard in ratings.folder.shards]
    shards = min(problem.config.cluster.shards, ratings.clients)
    return [int(cut) for cut in np.linspace(0, ratings.clients, shards + 1)[:-1]]


def setup_of(ray: Any, problem: Problem) -> Setup:
    """What workers need besides messages. Ratings in memory go to Ray's store, once."""
    config, ratings = replace(problem.config, engine=problem.config.cluster.engine), problem.ratings
    shards: list[FileShard | HeldShard] = []
    if isinstance(ratings, ShardedRatings):
        folder = replace(ratings.folder, path=ratings.folder.path.absolute())
        shards = [FileShard(folder, shard, ratings.fold) for shard in folder.shards]
    else:
        plain = replace(ratings, catalogue=None, folds=None, **told_order(ratings, config))
        for first, end in itertools.pairwise([*first_clients(problem), ratings.clients]):
            shards.append(HeldShard(first, (ray.put(of_clients(plain, first, end)),)))
    return Setup(config, problem.public, tuple(shards))


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
