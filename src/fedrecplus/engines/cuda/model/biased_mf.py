"""CUDA kernels of ``parts/model/biased_mf.py``: those of ``mf``."""

from fedrecplus.engines.cuda.model.mf import handles, predict, train

__all__ = ["handles", "predict", "train"]
