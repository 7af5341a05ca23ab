"""All clients at once: numba kernels under threads, packages of which mirror those of parts."""

from fedrecplus.engines.fast.engine import FastEngine, engine

__all__ = ["FastEngine", "engine"]
