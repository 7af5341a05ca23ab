"""Clients in shards on the actors of a Ray cluster, each with another engine inside."""

from fedrecplus.engines.ray.cluster import cluster_overview, slow_workers
from fedrecplus.engines.ray.engine import RayEngine, engine
from fedrecplus.engines.ray.private import ShardedPrivate
from fedrecplus.engines.ray.worker import ShardView

__all__ = [
    "RayEngine",
    "ShardView",
    "ShardedPrivate",
    "cluster_overview",
    "engine",
    "slow_workers",
]
