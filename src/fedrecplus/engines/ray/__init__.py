"""Clients in shards on the actors of a Ray cluster, each with another engine inside."""

from fedrecplus.engines.ray.engine import RayEngine, engine
from fedrecplus.engines.ray.private import ShardedPrivate

__all__ = ["RayEngine", "ShardedPrivate", "engine"]
