"""Clients in shards on the actors of a Ray cluster, each with another engine inside."""

from fedrecplus.engines.ray.engine import RayEngine, ShardedPrivate, engine

__all__ = ["RayEngine", "ShardedPrivate", "engine"]
