"""Kernels of ``parts/model/biased_mf.py``: those of ``mf``."""

from fedrecplus.engines.fast.model.mf import IN_STEPS, handles, predictor, train, updates, user_weights

__all__ = ["IN_STEPS", "handles", "predictor", "train", "updates", "user_weights"]
