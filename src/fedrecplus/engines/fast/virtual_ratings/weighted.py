"""Kernel of ``parts/virtual_ratings/weighted.py``."""

from __future__ import annotations

from fedrecplus.engines.fast.drawing import Drawing, Fill
from fedrecplus.engines.fast.virtual_ratings._neighbours import from_similar
from fedrecplus.parts.virtual_ratings import FillSettings


def filler(some: Drawing, options: FillSettings) -> Fill:
    """See ``from_similar``."""
    return from_similar(some, weighted=True)
