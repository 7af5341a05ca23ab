"""Kernel of ``parts/virtual_ratings/user_average.py``."""

from __future__ import annotations

from typing import Any

from fedrecplus.arrays.compiling import inner, kernel
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.parts.virtual_ratings import FillSettings


def filler(some: Drawing, options: FillSettings) -> Fill:
    """The mean rating of some clients."""
    rated = some.rated

    def fill(clients: Clients, items: Any, out: Any) -> None:
        user_average(clients, rated, out)

    return fill


@kernel
def user_average(clients: Any, rated: Any, out: Any) -> None:
    """The client's mean rating."""
    indptr, codes, levels, pseudo_indptr = rated.indptr, rated.codes, rated.levels, rated.pseudo_indptr
    for client in clients:
        mean = mean_rating(codes, indptr[client], indptr[client + 1], levels)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            out[place] = mean


@inner
def mean_rating(codes: Any, first: int, last: int, levels: Any) -> Any:
    """The mean of a client's ratings."""
    total = 0.0
    for at in range(first, last):
        total += levels[codes[at]]
    return total / max(last - first, 1)
