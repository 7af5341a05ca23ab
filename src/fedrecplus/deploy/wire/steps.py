"""The sum that a table was moved by, as it travels: devices that have the table before make the step themselves.

Both sides step from tables and sums in the precision in which they travel, so that equal arithmetic gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.protocol import PublicItems, Sums
from fedrecplus.rounds import ServerState, extend_server, server_round, start_server

SUM = "sum."
"""how the names of its arrays begin"""
_ARRAYS = ("total", "weights", "statistic")
_SCALARS = ("overall", "clients", "noise")


def as_told(sums: Sums, config: Config) -> Sums:
    """The sums as they are when they have travelled."""
    return replace(sums, total=sums.total.astype(config.precision).astype(np.float64))


def sum_arrays(sums: Sums, config: Config) -> dict[str, NDArray[Any]]:
    """The sums of ``as_told``, by the names that travel."""
    arrays = {name: getattr(sums, name).astype(np.float64) for name in _ARRAYS}
    arrays |= {"total": sums.total.astype(config.precision), "scalars": np.array([getattr(sums, n) for n in _SCALARS])}
    return {SUM + name: table for name, table in arrays.items()}


def sum_digest(sums: Sums, config: Config) -> str:
    """The name of a sum in a task's log."""
    return Packet({}, sum_arrays(sums, config)).digest


def sums_told(arrays: Mapping[str, NDArray[Any]]) -> Sums:
    """What ``sum_arrays`` made; a KeyError or ValueError for anything else."""
    total, weights, statistic = (arrays[SUM + name].astype(np.float64) for name in _ARRAYS)
    scalars = arrays[SUM + "scalars"].astype(np.float64)
    whole = all(np.isfinite(table).all() for table in (total, weights, statistic, scalars))
    if not whole or total.ndim != 2 or weights.shape != total.shape[:1] or scalars.shape != (3,) or statistic.ndim != 1:
        raise ValueError("a sum that is none")
    overall, clients, noise = scalars.tolist()
    return Sums(total, weights, overall, int(clients), statistic=statistic, noise=noise)


def first_state(config: Config, public: PublicItems) -> ServerState:
    """Before the first round: a start that follows from the task's seed."""
    return _in_precision(start_server(config, public), config)


def next_state(state: ServerState, sums: Sums, public: PublicItems, config: Config) -> ServerState:
    """After a round, from the sums as they were told."""
    return _in_precision(server_round(state, sums, public, config), config)


def grown_state(state: ServerState, public: PublicItems, config: Config) -> ServerState:
    """With rows for items that came since, from their features; as it was where none came."""
    before = len(state.V)
    if before == len(public.popularity):
        return state
    return _in_precision(extend_server(state, public.of_items(np.arange(before)), public, config), config)


def _in_precision(state: ServerState, config: Config) -> ServerState:
    V, dense = (table.astype(config.precision).astype(np.float64) for table in (state.V, state.dense))
    return replace(state, V=V, dense=dense)
