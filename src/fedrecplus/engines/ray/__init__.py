"""Clients in shards on the actors of a Ray cluster, each with another engine inside."""

from fedrecplus.engines.ray.cluster import cluster_overview as cluster_overview, slow_workers as slow_workers
from fedrecplus.engines.ray.engine import RayEngine as RayEngine, engine as engine
from fedrecplus.engines.ray.worker import ShardView as ShardView
