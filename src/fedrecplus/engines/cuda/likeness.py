"""Cosines of encoded items inside kernels."""

from __future__ import annotations

import triton.language as tl

from fedrecplus.engines.cuda.card import kernel


@kernel
def rounded(values: tl.tensor, scale: tl.tensor) -> tl.tensor:
    """Values on a grid of 1/scale. See ``parts/similarity.py``."""
    scaled = values * scale
    below = tl.floor(scaled)
    apart = scaled - below
    odd = below - 2.0 * tl.floor(below * 0.5)
    up = (apart > 0.5) | ((apart == 0.5) & (odd == 1.0))  # halves go to the even number, as NumPy's do
    return (below + up.to(tl.float64)) / scale


@kernel
def likeness(rows: tl.tensor, other: tl.tensor, scale: tl.tensor) -> tl.tensor:
    """Rounded cosines of unit rows and one other."""
    return rounded(tl.sum(rows * other[None, :], axis=1), scale)
