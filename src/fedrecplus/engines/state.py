"""The state of a simulation: arrays alone, so that a checkpoint is the state written to a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Items
from fedrecplus.config import Config
from fedrecplus.device import Decoys, Device
from fedrecplus.engines.problem import Problem
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import ServerState, broadcast, encode_items

PRIVATE_ARRAYS = ("U", "drawn", "pseudo_items", "virtual_ratings")
_BLOCK = 65_536


@dataclass(frozen=True)
class PrivateState:
    """What all clients keep on their devices between rounds."""

    U: NDArray[Any]
    """a row per client, of what the model keeps"""
    drawn: NDArray[np.bool_]
    """clients that have kept pseudo items"""
    pseudo_items: NDArray[Any]
    """kept pseudo items, by ``Problem.pseudo_indptr``; empty where sets are drawn anew each round"""
    virtual_ratings: NDArray[Any]
    """their kept ratings; empty where they are computed anew each round"""

    def copy(self) -> PrivateState:
        """A copy that may be written to."""
        return PrivateState(*(getattr(self, name).copy() for name in PRIVATE_ARRAYS))

    def with_kept(self, config: Config, newcomers: Items, items: NDArray[Any], ratings: NDArray[Any]) -> PrivateState:
        """With the pseudo rows that are kept for further rounds, those of some clients for the first time."""
        private = self
        if not config.redraws and len(newcomers):
            drawn = self.drawn.copy()
            drawn[newcomers] = True
            private = replace(private, drawn=drawn, pseudo_items=items)
        return private if config.refreshes else replace(private, virtual_ratings=ratings)

    def finite(self) -> bool:
        """Whether all numbers that clients keep are finite."""
        return bool(np.isfinite(self.U).all())


@dataclass(frozen=True)
class SimulationState:
    """The server's state beside all clients' private ones."""

    server: ServerState
    private: PrivateState

    @classmethod
    def of_server(cls, server: ServerState) -> SimulationState:
        """Of a server alone, whose clients keep their parts on their devices."""
        nobody = PrivateState(np.zeros((0, 0)), np.zeros(0, bool), np.zeros(0, np.int32), np.zeros(0))
        return cls(server, nobody)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it by name, for a checkpoint."""
        server = self.server
        named: dict[str, NDArray[Any]] = {
            "round": np.array([server.round]),
            "V": server.V,
            "last_step": server.last_step,
            "last_covariance": server.last_covariance,
            **{name: np.asarray(getattr(self.private, name)) for name in PRIVATE_ARRAYS},
        }
        named.update({f"moment_{number}": table for number, table in enumerate(server.moments)})
        if server.dense.size:  # files of models without any stay as they were
            named["dense"] = server.dense
            named.update({f"dense_moment_{number}": array for number, array in enumerate(server.dense_moments)})
        if server.head:
            named["head"] = np.array(server.head)
        return named

    @classmethod
    def of_arrays(cls, named: dict[str, NDArray[Any]]) -> SimulationState:
        """The state that ``arrays`` wrote."""
        moments, dense_moments = (
            [named[name] for name in sorted(named) if name.startswith(prefix)]
            for prefix in ("moment_", "dense_moment_")
        )
        V, last_step, covariance = (named[name] for name in ("V", "last_step", "last_covariance"))
        number, dense = int(named["round"][0]), named.get("dense", np.zeros(0))
        head = tuple(named.get("head", np.zeros(0, np.int64)).tolist())
        server = ServerState(number, V, last_step, covariance, moments, dense, dense_moments, head)
        private = (named[name] for name in PRIVATE_ARRAYS)
        return cls(server, PrivateState(*private))


@dataclass(frozen=True)
class RoundReport:
    """What a round cost."""

    clients: int
    bytes_up: int
    """sent by clients, to the server or to each other"""
    bytes_down: int
    """received by clients"""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """what each worker of a cluster took; nothing where there is none"""


def start_private(problem: Problem, dtype: Any = np.float64, first_client: int = 0) -> PrivateState:
    """What devices hold before their first round; in a shard, clients' own numbers begin with ``first_client``."""
    config, ratings, model = problem.config, problem.ratings, problem.config.model
    U = np.empty((ratings.clients, model.kept(ratings.item_count)), dtype=dtype)
    for first in range(0, ratings.clients, _BLOCK):
        block = np.arange(first, min(first + _BLOCK, ratings.clients))
        U[block] = model.start_users(config.seed, first_client + block, problem.public)
    places = 0 if config.redraws else int(problem.pseudo_indptr[-1])
    return PrivateState(
        U=U,
        drawn=np.zeros(ratings.clients, dtype=bool),
        pseudo_items=np.zeros(places, dtype=ratings.items.dtype),
        virtual_ratings=np.zeros(0 if config.refreshes else places, dtype=dtype),
    )


def message_of(problem: Problem, state: SimulationState, clients: NDArray[np.int64] | None = None) -> Broadcast:
    """The round's broadcast; with encoded items where one of these clients, or anybody, looks at them."""
    config, private = problem.config, state.private
    if not config.needs_features:  # and nobody has to look who has drawn
        return broadcast(state.server, problem.public, np.zeros((0, 0)))
    selecting = clients is None or config.redraws or not private.drawn[clients].all()
    filling = selecting or (config.refreshes and "features" in config.virtual_ratings.NEEDS)
    features = encode_items(state.server.V, problem.public, config) if filling else np.zeros((0, 0))
    return broadcast(state.server, problem.public, features)


def device_of(problem: Problem, private: PrivateState, client: int) -> Device:
    """One client, taken out of the simulation."""
    items, ratings = problem.ratings.of(client)
    places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
    kept = None
    if private.drawn[client]:
        virtual = private.virtual_ratings[places] if private.virtual_ratings.size else np.empty(0)
        kept = Decoys(private.pseudo_items[places].astype(np.int64), virtual.astype(np.float64))
    U, step = private.U[client].astype(np.float64), problem.ratings.scale.standard_step
    tested = {} if problem.tested is None else {"tested": problem.tested.of(client)[0]}
    span = slice(problem.ratings.indptr[client], problem.ratings.indptr[client + 1])
    ages = None if problem.ages is None else problem.ages[span].astype(np.int64)
    return Device(client, items, ratings, step, U, int(problem.secrets[client]), kept, ages, **tested)


def remember(problem: Problem, private: PrivateState, device: Device) -> None:
    """Put a client back into the arrays."""
    client = device.client
    private.U[client] = device.U
    if device.kept is not None and len(private.pseudo_items) and not private.drawn[client]:
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        private.pseudo_items[places] = device.kept.items
        if private.virtual_ratings.size:
            private.virtual_ratings[places] = device.kept.ratings
        private.drawn[client] = True
