"""The server's state before the first round, and as a checkpoint that has no clients in it."""

from __future__ import annotations

import numpy as np

from fedrecplus.config import Config
from fedrecplus.model import start_V
from fedrecplus.parts import part
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import ServerState
from fedrecplus.simulation import SimulationState

LAST = "last.safetensors"
"""the server's state after the last round, as a checkpoint"""


def first_state(config: Config, public: PublicItems, mean: float) -> ServerState:
    """The same start as a simulation's: the seed is public, and so is V."""
    V = start_V(config.seed, len(public.popularity), config.model, mean)
    moments = [np.zeros_like(V) for _ in range(part("server_steps", config.server.step).MOMENTS)]
    spread = np.zeros_like(V) if config.aggregation.covariance == "diagonal" else np.zeros((0, V.shape[1]))
    return ServerState(0, V, np.zeros_like(V), spread, moments, public.popularity)


def bare_state(server: ServerState) -> SimulationState:
    """The state of a simulation without clients, so that checkpoints have one format."""
    columns = server.V.shape[1] + 1
    nothing = np.zeros(0)
    return SimulationState(server, np.zeros((0, columns)), np.zeros(0, dtype=bool), nothing.astype(np.int32), nothing)
