"""Local training of everybody in one store. The one file of ``deploy`` that calls a simulation engine.

One person goes through the readable client function; many go through the fast engine, as a small simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings, narrowest
from fedrecplus.data.scale import Scale
from fedrecplus.device import Device, PseudoItems
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.rounds import ServerState, client_round
from fedrecplus.rounds.client import weigh
from fedrecplus.rounds.filling import pseudo_count
from fedrecplus.simulation import Problem, SimulationState, start


def train_locally(
    broadcast: Broadcast, clients: Sequence[Device], config: Config, scale: Scale, store_secret: int
) -> list[tuple[Upload, Device]]:
    """Each client's upload, and what it keeps for the next round."""
    if len(clients) > 1 and config.engine == "fast":
        return _train_by_engine(broadcast, clients, config, scale, store_secret)
    return [client_round(broadcast, client, config) for client in clients]


def _train_by_engine(
    broadcast: Broadcast, clients: Sequence[Device], config: Config, scale: Scale, store_secret: int
) -> list[tuple[Upload, Device]]:
    from fedrecplus.fast.uploads import uploads_of  # here: numba takes a second that one person need not wait for

    # The engine derives each client's secret from the seed and the client's number, as ``client_secret`` does from the
    # store's secret and the person's. Where it takes ``Device.secret`` itself, the seed can stay the server's.
    problem = _problem(broadcast, clients, replace(config, seed=store_secret), scale)
    state, uploads = uploads_of(problem, _state(problem, broadcast, clients), np.array([one.client for one in clients]))
    after = [_after(problem, state, client) for client in clients]
    return [(weigh(upload, broadcast, config), client) for upload, client in zip(uploads, after, strict=True)]


def _problem(broadcast: Broadcast, clients: Sequence[Device], config: Config, scale: Scale) -> Problem:
    """The clients' ratings as the engine takes them; numbers between theirs are clients without ratings."""
    count, items = max(client.client for client in clients) + 1, len(broadcast.V)
    rated, pseudo = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for client in clients:
        rated[client.client] = len(client.items)
        fresh = pseudo_count(len(client.items), items, config.pseudo_items)
        pseudo[client.client] = fresh if client.kept is None else len(client.kept.items)
    levels = scale.codes(scale.restore(np.concatenate([client.ratings for client in clients])))
    numbers = np.concatenate([client.items for client in clients]).astype(narrowest(items))
    ratings = Ratings("silo", scale, _starts(rated), numbers, levels, np.arange(count), np.arange(items))
    return Problem(config, ratings, broadcast.public, broadcast.mean, _starts(pseudo))


def _state(problem: Problem, broadcast: Broadcast, clients: Sequence[Device]) -> SimulationState:
    state = start(problem, np.dtype(problem.config.precision).type)
    V, step, spread = (t.astype(state.U.dtype) for t in (broadcast.V, broadcast.last_step, broadcast.last_spread))
    state = replace(state, server=ServerState(broadcast.round, V, step, spread, []))
    for client in clients:
        state.U[client.client] = client.U
        if client.kept is not None and state.pseudo_items.size:
            here = _places(problem, client)
            state.drawn[client.client] = True
            state.pseudo_items[here] = client.kept.items
            if state.virtual_ratings.size:
                state.virtual_ratings[here] = client.kept.ratings
    return state


def _after(problem: Problem, state: SimulationState, client: Device) -> Device:
    kept = None
    if not problem.config.pseudo_items.redraw:
        here = _places(problem, client)
        items = state.pseudo_items[here].astype(np.int64)
        ratings = state.virtual_ratings[here] if state.virtual_ratings.size else np.zeros(len(items))
        kept = PseudoItems(items, ratings.astype(np.float64))
    return replace(client, U=state.U[client.client].astype(np.float64), kept=kept)


def _places(problem: Problem, client: Device) -> slice:
    return slice(int(problem.pseudo_indptr[client.client]), int(problem.pseudo_indptr[client.client + 1]))


def _starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
