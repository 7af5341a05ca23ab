"""CUDA kernel of ``parts/virtual_ratings/hybrid.py``: user averages, then the model's own predictions."""

from __future__ import annotations

from fedrecplus.engines.cuda.card import Tensor
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.cuda.virtual_ratings import predicted, user_average
from fedrecplus.parts.virtual_ratings.hybrid import Settings


def fill(some: Round, options: Settings, key: int, out: Tensor) -> bool:
    """Means or predictions of the round's clients."""
    if some.message.round < options.predict_after:
        return user_average.fill(some, options, key, out)
    return predicted.fill(some, options, key, out, options.local_steps)
