"""CUDA kernel of ``parts/virtual_ratings/predicted.py``: the model's own."""

from __future__ import annotations

from typing import Any

from fedrecplus.engines.cuda.card import Tensor
from fedrecplus.engines.cuda.registry import kernel_of
from fedrecplus.engines.cuda.round import Round


def fill(some: Round, options: Any, key: int, out: Tensor, steps: int = 0) -> bool:
    """Predictions of the round's clients; nothing where the model has no kernel for them."""
    model = kernel_of(some.problem.config.model)
    if model is None or not hasattr(model, "predict"):
        return False
    model.predict(some, steps, out)
    return True
