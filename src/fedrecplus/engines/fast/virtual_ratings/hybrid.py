"""Kernel of ``parts/virtual_ratings/hybrid.py``: user averages, then the model's own predictions."""

from __future__ import annotations

from fedrecplus.engines.fast.drawing import Drawing, Fill
from fedrecplus.engines.fast.registry import kernel_of
from fedrecplus.engines.fast.virtual_ratings import user_average
from fedrecplus.parts.virtual_ratings import FillSettings
from fedrecplus.parts.virtual_ratings.hybrid import Settings


def filler(some: Drawing, options: Settings) -> Fill | None:
    """Means or predictions of some clients; nothing where the model has no kernel."""
    if some.message.round < options.predict_after:
        return user_average.filler(some, FillSettings())
    model = kernel_of(some.problem.config.model)
    return None if model is None else model.predictor(some, options.local_steps)
