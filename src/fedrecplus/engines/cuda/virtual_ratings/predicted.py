"""CUDA kernel of ``parts/virtual_ratings/predicted.py``: the model's own predictions."""

from __future__ import annotations

from typing import Any

from fedrecplus.engines.cuda import batches
from fedrecplus.engines.cuda.card import Tensor
from fedrecplus.engines.cuda.registry import kernel_of
from fedrecplus.engines.cuda.round import Round


def fill(some: Round, options: Any, key: int, out: Tensor, steps: int = 0) -> bool:
    """Predictions of the round's clients."""
    fused = kernel_of(some.problem.config.model)
    (batches if fused is None else fused).predict(some, steps, out)
    return True
