"""Who shares masks with whom: every client with everybody in a small cohort, with a few neighbours in a large one.

After: Bell, Bonawitz, Gascón, Lepoint, Raykova 2020 (SecAgg+), Section 3: a ring in random order in which each client
is joined to the k/2 clients on either side (a Harary graph), with their union bounds of what can go wrong.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SECURITY_BITS = 40
"""σ: a graph lets corrupted clients and the server unmask somebody with a probability of 2^−40 at most"""
CORRECTNESS_BITS = 20
"""η: a round with dropouts up to the bound fails with a probability of 2^−20 at most"""
LEAST_SPARSE = 100
"""smaller cohorts are complete graphs"""
FEWEST_NEIGHBOURS = 22
"""of larger ones: fewer are in no plan for a tenth that vanishes, even if nobody is corrupted"""


@dataclass(frozen=True)
class GraphPlan:
    """How many neighbours, and how many of their shares restore a secret."""

    neighbours: int
    threshold: int
    complete: bool
    """everybody is everybody's neighbour"""


@functools.cache
def plan(cohort: int, corrupted: float, dropout: float, pinned: bool = False, sparse: bool = True) -> GraphPlan:
    """The fewest neighbours that meet both bounds, or everybody where that takes no fewer.

    ``corrupted`` and ``dropout`` are shares of the cohort: who colludes with the server, and who vanishes.
    """
    if sparse and cohort >= LEAST_SPARSE:
        for k in range(4, cohort - 1, 2):
            graph = _sparse(cohort, corrupted, dropout, k, pinned)
            if graph is not None:
                return graph
    k = cohort - 1
    return GraphPlan(k, min(max(least_threshold(k, pinned), math.ceil(corrupted * cohort) + 1), k), True)


def least_threshold(neighbours: int, pinned: bool) -> int:
    """The least number of shares that a client accepts.

    More than half: the server can't get one secret of a neighbour from one half and the other one from the rest. Where
    the server is not trusted to tell everybody the same, more than two thirds (Bonawitz et al. 2017, Theorem 6.5).
    """
    return 2 * neighbours // 3 + 1 if pinned else neighbours // 2 + 1


def least_neighbours(cohort: int) -> int:
    """The fewest neighbours that a client accepts: a server could make a small cohort of few that know no others."""
    return cohort - 1 if cohort < LEAST_SPARSE else FEWEST_NEIGHBOURS


def fewest_of(share: float, cohort: int) -> int:
    """A share of a cohort, rounded down."""
    return math.floor(share * cohort)


def failure_bounds(cohort: int, corrupted: float, dropout: float, k: int, threshold: int) -> tuple[float, float]:
    """Bounds on the probability that a drawn ring is insecure, and that it can't be finished.

    Insecure: among somebody's k neighbours are ``threshold`` corrupted ones, who can restore its secrets; or k/2
    successive clients of the ring are corrupted or vanish, so that the sums of the two sides could be told apart.
    Unfinished: of somebody's neighbours fewer than ``threshold`` stay. Hypergeometric tails, times the clients.
    """
    bad, away = math.ceil(corrupted * cohort), math.ceil(dropout * cohort)
    caught = cohort * _upper_tail(cohort - 1, bad, k, threshold)
    cut = cohort * _all_of(cohort, min(bad + away, cohort), k // 2)
    return caught + cut, cohort * _upper_tail(cohort - 1, away, k, k - threshold + 1)


def ring(clients: Sequence[int], neighbours: int, shuffle: Callable[[list[int]], None]) -> dict[int, tuple[int, ...]]:
    """Everybody's neighbours, ascending, in a ring of random order."""
    order, half = sorted(clients), neighbours // 2
    shuffle(order)
    count = len(order)
    return {
        client: tuple(sorted({order[(place + step) % count] for step in range(-half, half + 1)} - {client}))
        for place, client in enumerate(order)
    }


def everybody(clients: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The complete graph."""
    order = sorted(clients)
    return {client: tuple(other for other in order if other != client) for client in order}


def _sparse(cohort: int, corrupted: float, dropout: float, k: int, pinned: bool) -> GraphPlan | None:
    """A plan with k neighbours, if one threshold meets both bounds."""
    for threshold in range(least_threshold(k, pinned), k + 1):
        insecure, unfinished = failure_bounds(cohort, corrupted, dropout, k, threshold)
        if unfinished > 2.0**-CORRECTNESS_BITS:
            return None
        if insecure <= 2.0**-SECURITY_BITS:
            return GraphPlan(k, threshold, False)
    return None


def _upper_tail(population: int, marked: int, drawn: int, least: int) -> float:
    """P[at least so many marked ones among those drawn], without replacement."""
    highest = min(drawn, marked)
    if least > highest:
        return 0.0
    ways = sum(math.comb(marked, x) * math.comb(population - marked, drawn - x) for x in range(least, highest + 1))
    return float(ways / math.comb(population, drawn))


def _all_of(population: int, marked: int, drawn: int) -> float:
    """P[all that are drawn are marked]."""
    return math.comb(marked, drawn) / math.comb(population, drawn)
