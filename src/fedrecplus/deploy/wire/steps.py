"""The sums that a table was moved by, as they travel: devices that have the table before make the step themselves.

There is one sum, or one of each group of the cohort that came to one.

Both sides step from tables and sums in the precision in which they travel, so that equal arithmetic gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, change
from fedrecplus.deploy.wire.packet import Facts, Packet, Refusal
from fedrecplus.parts.channel import RingSettings, expected_in, joined, never_summed
from fedrecplus.protocol import PublicItems, Sums
from fedrecplus.rounds import ServerState, extend_server, server_round, start_server

SUM = "sum."
"""how the names of its arrays begin"""
_ARRAYS = ("total", "weights", "statistic")
_SCALARS = ("overall", "clients", "noise")


def as_told(sums: Sums, config: Config) -> Sums:
    """The sums as they are when they have travelled."""
    return replace(sums, total=sums.total.astype(config.precision).astype(np.float64))


def sum_arrays(groups: Sequence[Sums], config: Config) -> dict[str, NDArray[Any]]:
    """The sums of ``as_told``, above each other, by the names that travel."""
    each = [_arrays(sums, config) for sums in groups]
    return {SUM + name: np.stack([arrays[name] for arrays in each]) for name in each[0]}


def sum_digest(groups: Sequence[Sums], config: Config) -> str:
    """The names of sums in a task's log, of each group one."""
    return told_digest(sum_arrays(groups, config))


def told_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """The same, of the sums as they travel; a KeyError or ValueError where they are none."""
    groups = len(arrays[SUM + "total"])
    if {len(table) for table in arrays.values()} != {groups}:
        raise ValueError("sums of another number of groups than others")
    each = ({name.removeprefix(SUM): table[place] for name, table in arrays.items()} for place in range(groups))
    return " ".join(Packet({}, one).digest for one in each)


def sums_told(arrays: Mapping[str, NDArray[Any]]) -> list[Sums]:
    """What ``sum_arrays`` made; a KeyError or ValueError for anything else."""
    whole = {name: arrays[SUM + name] for name in (*_ARRAYS, "scalars")}
    counts = {table.shape[:1] for table in whole.values()}
    if len(counts) != 1 or counts <= {(), (0,)}:
        raise ValueError("sums of another number of groups than others")
    return [_one_told({name: table[place] for name, table in whole.items()}) for place in range(len(whole["total"]))]


def _arrays(sums: Sums, config: Config) -> dict[str, NDArray[Any]]:
    arrays = {name: getattr(sums, name).astype(np.float64) for name in _ARRAYS}
    return arrays | {
        "total": sums.total.astype(config.precision),
        "scalars": np.array([getattr(sums, name) for name in _SCALARS]),
    }


def _one_told(arrays: Mapping[str, NDArray[Any]]) -> Sums:
    total, weights, statistic = (arrays[name].astype(np.float64) for name in _ARRAYS)
    scalars = arrays["scalars"].astype(np.float64)
    whole = all(np.isfinite(table).all() for table in (total, weights, statistic, scalars))
    if not whole or total.ndim != 2 or weights.shape != total.shape[:1] or scalars.shape != (3,) or statistic.ndim != 1:
        raise ValueError("a sum that is none")
    overall, clients, noise = scalars.tolist()
    return Sums(total, weights, overall, int(clients), statistic=statistic, noise=noise)


def is_possible(sums: Sums, public: PublicItems, config: Config) -> bool:
    """Whether so many people could have made this sum, of the rows that are summed. Under a budget noise is in it.

    Who could move rows of few raters would have the sums of the next round tell these raters' lists.
    """
    ring = config.channel.settings
    if not isinstance(ring, RingSettings) or config.privacy.rule != "none":
        return True
    most = np.array([ring.bound, ring.statistic_bound, ring.largest_weight]) * max(sums.clients, 0)
    largest = [np.abs(table).max(initial=0.0) for table in (sums.total, sums.statistic, sums.overall)]
    moved = sums.total[never_summed(public.of_items(np.arange(len(sums.total))), ring)]
    return bool((largest <= most).all() and sums.overall >= 0.0 and not moved.any())


def first_state(config: Config, public: PublicItems) -> ServerState:
    """Before the first round: a start that follows from the task's seed."""
    return _in_precision(start_server(config, public), config)


def next_state(state: ServerState, groups: Sequence[Sums], public: PublicItems, config: Config) -> ServerState:
    """After a round, from the sums as they were told."""
    sums, _ = joined(groups, expected_in(1, public))
    return _in_precision(server_round(state, sums, public, config), config)


def of_run(config: Config, entry: Facts, round_number: int) -> Config:
    """The settings with as many rounds as the log says that a step's run had; ``Refusal`` where that can't be."""
    rounds = entry.get("rounds") or config.server.rounds
    if not isinstance(rounds, int) or not round_number < rounds <= config.server.rounds:
        raise Refusal("task", f"a step of round {round_number} in a run of {str(rounds)[:20]} rounds")
    return change(config, "server.rounds", rounds)


def grown_state(state: ServerState, public: PublicItems, config: Config) -> ServerState:
    """With rows for items that came since, from their features; as it was where none came."""
    before = len(state.V)
    if before == len(public.popularity):
        return state
    return _in_precision(extend_server(state, public.of_items(np.arange(before)), public, config), config)


def _in_precision(state: ServerState, config: Config) -> ServerState:
    V, dense = (table.astype(config.precision).astype(np.float64) for table in (state.V, state.dense))
    return replace(state, V=V, dense=dense)
