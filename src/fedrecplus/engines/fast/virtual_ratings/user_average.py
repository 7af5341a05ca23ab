"""Kernel of ``parts/virtual_ratings/user_average.py``."""

from __future__ import annotations

from typing import Any

from fedrecplus.engines.fast.compiling import inner, kernel
from fedrecplus.engines.fast.selecting import Clients, Fill, Filling
from fedrecplus.parts.virtual_ratings.user_average import Settings


def filler(some: Filling, options: Settings) -> Fill:
    """The mean rating of some clients."""
    indptr, _, codes, levels = some.rated

    def fill(clients: Clients, items: Any, out: Any) -> None:
        user_average(clients, indptr, codes, levels, some.indptr, out)

    return fill


@kernel
def user_average(clients: Any, indptr: Any, codes: Any, levels: Any, pseudo_indptr: Any, out: Any) -> None:
    """The client's mean rating."""
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
