"""Kernel of ``parts/virtual_ratings/predicted.py``: the model's own."""

from __future__ import annotations

from fedrecplus.engines.fast.drawing import Drawing, Fill
from fedrecplus.engines.fast.registry import kernel_of
from fedrecplus.parts.virtual_ratings import FillSettings


def filler(some: Drawing, options: FillSettings) -> Fill | None:
    """Predictions of some clients; nothing where the model has no kernel."""
    model = kernel_of(some.problem.config.model)
    return None if model is None else model.predictor(some, 0)
