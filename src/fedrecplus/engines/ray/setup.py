"""What workers are told once: settings, public things, and where each shard is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.data.shards import ShardedRatings, of_clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.ray.worker import FileShard, HeldShard, Setup, told_order


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
