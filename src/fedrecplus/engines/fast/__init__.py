"""All clients at once, in batches under threads."""

from fedrecplus.engines.fast.engine import FastEngine, engine

__all__ = ["FastEngine", "engine"]
