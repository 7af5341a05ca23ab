"""The pseudo rows of a round, for all its clients: kept, or drawn and rated by kernels. See ``rounds/client.py``.

A rule without a kernel is run by its own file, client by client; the other keeps its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel, mix, to_unit
from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.device import Decoys
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill, Select
from fedrecplus.engines.fast.registry import kernel_of
from fedrecplus.engines.fast.sorting import sort_by
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, device_of, redraws, refreshes
from fedrecplus.parts.virtual_ratings import TIE
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import predictions, select_items


class KernelRows(NamedTuple):
    """Everybody's rated and pseudo rows, as kernels take them."""

    indptr: Any
    items: Any
    codes: Any
    levels: Any
    pseudo_indptr: Any
    pseudo_items: Any
    virtual_ratings: Any


@dataclass(frozen=True)
class PseudoRows:
    """Pseudo items and virtual ratings of all clients, by place."""

    indptr: NDArray[np.int64]
    items: NDArray[Any]
    ratings: NDArray[Any]
    levels: NDArray[Any]
    """level number → rating on the standard scale"""

    def rows(self, problem: Problem) -> KernelRows:
        """Everybody's rated and pseudo rows, for kernels."""
        ratings = problem.ratings
        rated = (ratings.indptr, ratings.items, ratings.codes, self.levels)
        return KernelRows(*rated, self.indptr, self.items, self.ratings)

    def of(self, client: int) -> Decoys:
        """One client's."""
        places = slice(self.indptr[client], self.indptr[client + 1])
        return Decoys(self.items[places].astype(np.int64), self.ratings[places].astype(np.float64))


def pseudo_rows(
    problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
) -> tuple[PrivateState, PseudoRows]:
    """The pseudo rows of these clients, and the private state with those that are kept."""
    dtype, indptr = message.V.dtype, problem.pseudo_indptr
    levels, places = problem.levels.astype(dtype), int(problem.pseudo_indptr[-1])
    if places == 0:
        nothing = np.zeros(0, dtype=problem.ratings.items.dtype)
        return private, PseudoRows(indptr, nothing, np.zeros(0, dtype=dtype), levels)
    redraw, refresh = redraws(problem), refreshes(problem)
    newcomers = clients if redraw else clients[~private.drawn[clients]]
    items = np.zeros(places, dtype=problem.ratings.items.dtype) if redraw else private.pseudo_items
    ratings = np.zeros(places, dtype=dtype) if refresh else private.virtual_ratings
    to_rate = clients if refresh else newcomers
    if len(newcomers):
        items = items if redraw else items.copy()
        select(Drawing(problem, private, message, message.round if redraw else 0), newcomers, items)
    if len(to_rate):
        ratings = ratings if refresh else ratings.copy()
        fill_ratings(Drawing(problem, private, message, message.round if refresh else 0), to_rate, items, ratings)
    if not redraw and len(newcomers):
        drawn = private.drawn.copy()
        drawn[newcomers] = True
        private = replace(private, drawn=drawn, pseudo_items=items)
    if not refresh:
        private = replace(private, virtual_ratings=ratings)
    return private, PseudoRows(indptr, items, ratings, levels)


def select(some: Drawing, clients: Clients, out: NDArray[Any]) -> None:
    """Write these clients' pseudo items to their places."""
    problem, chosen = some.problem, some.problem.config.pseudo_items
    found = kernel_of(chosen)
    chooser: Select | None = None if found is None else found.selector(some, chosen.settings)

    def work(part: Clients) -> Clients:
        left = part if chooser is None else chooser(part, out)
        if not redraws(problem):  # kept sets are compared; sets for one round need no order
            put_in_order(part, problem.pseudo_indptr, out)
        return part[:0] if left is None else left

    for client in np.concatenate(on_threads(work, chunks(clients, np.diff(problem.ratings.indptr)))).tolist():
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        device = device_of(problem, some.private, client)
        out[places] = select_items(places.stop - places.start, device, some.message, problem.config)


def fill_ratings(some: Drawing, clients: Clients, items: NDArray[Any], out: NDArray[Any]) -> None:
    """Write the virtual ratings of these clients' pseudo items to their places."""
    problem, chosen = some.problem, some.problem.config.virtual_ratings
    found = kernel_of(chosen)
    fill: Fill | None = None if found is None else found.filler(some, chosen.settings)
    rounding = ("none", "nearest", "stochastic").index(chosen.settings.rounding)
    step, keys = problem.ratings.scale.standard_step, some.keys("rounding")

    def work(part: Clients) -> None:
        if fill is None:
            _fill_one_by_one(some, part, items, out)
        else:
            fill(part, items, out)
        put_on_scale(part, some.problem.pseudo_indptr, items, rounding, step, keys, STANDARD_LOW, STANDARD_HIGH, out)

    counts = np.diff(problem.ratings.indptr) + np.diff(problem.pseudo_indptr)
    on_threads(
        work, chunks(clients[np.argsort(counts[clients], kind="stable")], counts)
    )  # alike in size: fewer batches


def _fill_one_by_one(some: Drawing, clients: Clients, items: NDArray[Any], out: NDArray[Any]) -> None:
    """A rule without a kernel: its own file, client by client."""
    config = some.problem.config
    rule = config.virtual_ratings
    for client in clients.tolist():
        places = slice(some.problem.pseudo_indptr[client], some.problem.pseudo_indptr[client + 1])
        device = device_of(some.problem, some.private, client)
        predict = predictions(device, some.message, config)
        out[places] = rule.fill(items[places].astype(np.int64), device, some.message, predict)


@kernel
def put_in_order(clients: Any, pseudo_indptr: Any, out: Any) -> None:
    """Each client's items ascending. A kernel of its own: sorting inside the others is compiled anew for each."""
    for client in clients:
        first, n = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        numbers, same = np.empty(n, np.uint64), np.empty(n, np.int64)
        for place in range(n):
            numbers[place] = out[first + place]
        sort_by(numbers, same, n)
        for place in range(n):
            out[first + place] = numbers[place]


@kernel
def put_on_scale(
    clients: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    rounding: int,
    step: float,
    keys: Any,
    low: float,
    high: float,
    out: Any,
) -> None:
    """Clip to the scale's ends and, if asked, round to its levels. See ``parts/virtual_ratings/_scale.py``."""
    secrets = keys.secrets
    for client in clients:
        key = mix(mix(secrets[client], keys.purpose), keys.round)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            value = float(out[place])
            value = low if value < low else high if value > high else value
            if rounding > 0:
                level = (value - low) / step
                threshold = to_unit(mix(key, np.uint64(pseudo_items[place]))) if rounding == 2 else 0.5
                below = np.floor(level)
                value = low + step * (below + (level - below > threshold + TIE))
                value = low if value < low else high if value > high else value
            out[place] = value
