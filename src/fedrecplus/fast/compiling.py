"""How kernels are compiled, and the keyed draws inside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from fedrecplus import randomness

# sums may be reordered so that they run in vector registers; NaN and infinity keep their meaning
_MATH = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile at first use, without the interpreter's lock, and cache; a cache that can't be written is no error."""
    try:
        compiled: Callable[..., Any] = numba.njit(nogil=True, fastmath=_MATH, cache=True)(function)
    except RuntimeError:  # numba found no folder that it may write to
        compiled = numba.njit(nogil=True, fastmath=_MATH)(function)
    return compiled


mix = kernel(randomness.mix)
to_unit = kernel(randomness.to_unit)
