"""CUDA kernel of ``parts/virtual_ratings/drawn.py``."""

from __future__ import annotations

from fedrecplus.engines.cuda.card import Tensor
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.cuda.virtual_ratings._neighbours import DRAWN, from_similar
from fedrecplus.parts.virtual_ratings.drawn import Settings


def fill(some: Round, options: Settings, key: int, out: Tensor) -> bool:
    """See ``from_similar``."""
    return from_similar(some, DRAWN, key, out, options.temperature, options.width)
