"""Kernel of ``parts/virtual_ratings/hybrid.py``: user averages, then the model's own predictions."""

from __future__ import annotations

from fedrecplus.engines.fast.batches import predictor
from fedrecplus.engines.fast.drawing import Drawing, Fill
from fedrecplus.engines.fast.virtual_ratings import user_average
from fedrecplus.parts.virtual_ratings import FillSettings
from fedrecplus.parts.virtual_ratings.hybrid import Settings


def filler(some: Drawing, options: Settings) -> Fill:
    """Means or predictions of some clients."""
    if some.message.round < options.predict_after:
        return user_average.filler(some, FillSettings())
    return predictor(some, options.local_steps)
