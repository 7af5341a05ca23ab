"""Which items a made-up client rates."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fedrecplus import randomness

_mix = numba.njit(randomness.mix)
_to_unit = numba.njit(randomness.to_unit)


@numba.njit(nogil=True, cache=True)  # type: ignore[misc, unused-ignore]
def choose_items(
    keys: NDArray[np.uint64], counts: NDArray[np.int64], cumulative: NDArray[np.float64], chosen: NDArray[Any]
) -> None:
    """Write into ``chosen``, client after client and ascending, the first ``counts`` different items that each draws.

    Items are drawn with replacement by popularity, and what was drawn before is passed over: the same as drawing
    without replacement, and nothing as long as the catalogue is touched per client.
    """
    drawn_by = np.full(len(cumulative), -1, dtype=np.int64)
    start = 0
    for client in range(len(keys)):
        end, filled, draw = start + counts[client], start, np.uint64(0)
        while filled < end:
            item = np.searchsorted(cumulative, _to_unit(_mix(keys[client], draw)), side="right")
            draw += np.uint64(1)
            if drawn_by[item] != client:
                drawn_by[item] = client
                chosen[filled] = item
                filled += 1
        chosen[start:end].sort()
        start = end
