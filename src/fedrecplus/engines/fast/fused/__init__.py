"""Local epochs of the factorisations, fused: a client is trained, weighed and added up while its rows are in a cache.

Without it a round of ``fedmf`` takes XX times as long. ``parts/model/mf.py`` is the readable form.
"""

from fedrecplus.engines.fast.fused.round import predict, serves, train

__all__ = ["predict", "serves", "train"]
