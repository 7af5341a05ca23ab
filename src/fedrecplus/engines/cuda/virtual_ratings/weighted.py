"""CUDA kernel of ``parts/virtual_ratings/weighted.py``."""

from __future__ import annotations

from fedrecplus.engines.cuda.card import Tensor
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.cuda.virtual_ratings._neighbours import WEIGHTED, from_similar
from fedrecplus.parts.virtual_ratings import FillSettings


def fill(some: Round, options: FillSettings, key: int, out: Tensor) -> bool:
    """See ``from_similar``."""
    return from_similar(some, WEIGHTED, key, out)
