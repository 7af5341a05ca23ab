"""Kernels of ``parts/model/biased_mf.py``: those of ``mf``."""

from fedrecplus.engines.fast.model.mf import handles, predictor, train

__all__ = ["handles", "predictor", "train"]
