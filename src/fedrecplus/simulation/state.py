"""The state of a simulation: arrays alone, so that a checkpoint is the state written to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.model import start_U, start_V
from fedrecplus.parts import part
from fedrecplus.rounds.server import ServerState
from fedrecplus.simulation.problem import Problem


@dataclass(frozen=True)
class SimulationState:
    """The server's state beside all clients' private ones."""

    server: ServerState
    U: NDArray[Any]
    """a row per client"""
    drawn: NDArray[np.bool_]
    """clients that have kept pseudo items"""
    pseudo_items: NDArray[Any]
    """kept pseudo items, by ``Problem.pseudo_indptr``; empty where sets are drawn anew each round"""
    virtual_ratings: NDArray[Any]
    """their kept ratings; empty where they are computed anew each round"""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it by name, for a checkpoint."""
        named: dict[str, NDArray[Any]] = {
            "round": np.array([self.server.round]),
            "V": self.server.V,
            "last_step": self.server.last_step,
            "last_spread": self.server.last_spread,
            "popularity": self.server.popularity,
            "U": self.U,
            "drawn": self.drawn,
            "pseudo_items": self.pseudo_items,
            "virtual_ratings": self.virtual_ratings,
        }
        named.update({f"moment_{number}": table for number, table in enumerate(self.server.moments)})
        return named

    @classmethod
    def of_arrays(cls, named: dict[str, NDArray[Any]]) -> SimulationState:
        """The state that ``arrays`` wrote."""
        moments = [named[name] for name in sorted(named) if name.startswith("moment_")]
        server = ServerState(
            int(named["round"][0]), named["V"], named["last_step"], named["last_spread"], moments, named["popularity"]
        )
        return cls(server, named["U"], named["drawn"], named["pseudo_items"], named["virtual_ratings"])


@dataclass(frozen=True)
class RoundReport:
    """What a round cost."""

    clients: int
    bytes_up: int
    """sent by clients, to the server or to each other"""
    bytes_down: int
    """received by clients"""


def start(problem: Problem, dtype: Any = np.float64) -> SimulationState:
    """The state before the first round."""
    config, ratings = problem.config, problem.ratings
    V = start_V(config.seed, ratings.item_count, config.model, problem.mean).astype(dtype)
    U = np.empty((ratings.clients, problem.shape.u_columns), dtype=dtype)
    for first in range(0, ratings.clients, _BLOCK):
        block = np.arange(first, min(first + _BLOCK, ratings.clients))
        U[block] = start_U(config.seed, block, config.model, problem.mean)
    moments = [np.zeros_like(V) for _ in range(part("server_steps", config.server.step).MOMENTS)]
    places = 0 if config.pseudo_items.redraw else int(problem.pseudo_indptr[-1])
    return SimulationState(
        server=ServerState(0, V, np.zeros_like(V), _start_spread(problem, V), moments, problem.public.popularity),
        U=U,
        drawn=np.zeros(ratings.clients, dtype=bool),
        pseudo_items=np.zeros(places, dtype=ratings.items.dtype),
        virtual_ratings=np.zeros(0 if config.virtual_ratings.refresh else places, dtype=dtype),
    )


_BLOCK = 65_536


def _start_spread(problem: Problem, V: NDArray[Any]) -> NDArray[Any]:
    kind = problem.config.aggregation.covariance
    if kind == "none":
        return np.zeros((0, V.shape[1]), dtype=V.dtype)
    return np.zeros_like(V) if kind == "diagonal" else np.zeros((V.size, V.size), dtype=V.dtype)
