"""What an engine is: one way to run the rounds of all clients.

All engines have the same state, so that everything after a round is the same for all. An engine does the clients' half
of a round; the server's half is ``rounds.server_round``, whoever ran the clients.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import remember_last
from fedrecplus.config import Config
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, RoundReport, SimulationState, message_of, start_private
from fedrecplus.errors import unknown_name
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.rounds import add_up, released, server_round, start_server

Clients = NDArray[np.int64]
Recency = NDArray[np.float64]
ENGINES = ("fast", "cuda", "ray", "reference", "central", "auto")


class Engine(ABC):
    """A way to run rounds."""

    def __init__(self, precision: str = "float64") -> None:
        self.dtype: Any = np.dtype(precision).type
        """of the tables"""

    def start(self, problem: Problem) -> SimulationState:
        """The state before the first round."""
        server = start_server(problem.config, problem.public, self.dtype)
        return SimulationState(server, start_private(problem, self.dtype))

    def round(self, problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
        """One round of everybody, or of the columns whose turn it is. Paper: Algorithm 1, lines 1–11"""
        turn = problem.config.model.turn(problem.config, state.server.round)
        if turn is not None:
            server, columns = state.server, turn.columns
            columns_state = replace(state, server=server.of_columns(columns))
            after, report = self.round(in_turn(problem, turn.config), columns_state)
            return replace(after, server=server.with_columns(columns, after.server)), report
        clients = problem.cohort(state.server.round)
        message = message_of(problem, state, clients)
        sums, private, report = self.sums(problem, state.private, message, clients)
        asked = len(problem.asked(state.server.round))
        sums = released(sums, state.server.round, problem.public, problem.config, asked=asked)
        server = server_round(state.server, sums, problem.public, problem.config)
        return replace(state, server=server, private=private), report

    @abstractmethod
    def sums(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[Sums, PrivateState, RoundReport]:
        """The clients' half of a round: what their uploads add up to, their new private state, and the cost."""

    @abstractmethod
    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """What each of these clients sends by itself, after the whole chain, and their new private state."""

    def join(self, problem: Problem, uploads: Sequence[Upload], message: Broadcast) -> tuple[Sums, Traffic]:
        """What single uploads amount to, and what the channel's messages cost."""
        return add_up(uploads, message, problem.config)

    def sums_of_uploads(
        self, problem: Problem, uploads: Sequence[Upload], message: Broadcast, peer_bytes: int = 0
    ) -> tuple[Sums, RoundReport]:
        """What a cohort's single uploads amount to, and what they and all other messages cost."""
        sums, traffic = self.join(problem, uploads, message)
        down = len(uploads) * message.bytes + peer_bytes + traffic.bytes_down
        return sums, RoundReport(len(uploads), traffic.bytes_up + peer_bytes, down)

    @abstractmethod
    def item_sets(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> dict[int, NDArray[np.int64]]:
        """Which items each of these clients uploads rows of, ascending."""

    @abstractmethod
    def user_weights(self, problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
        """Every client's weights for predictions; those of a client without ratings are of no account."""

    def list_weights(
        self, problem: Problem, W: NDArray[Any], X: NDArray[Any], recency: Recency | None = None
    ) -> NDArray[Any] | None:
        """Every client's weights for lists, over the same columns X; None where predicted ratings rank.

        ``recency`` weighs every rating; None: all alike.
        """
        model, wide = problem.config.model, X.astype(np.float64)
        if not problem.config.model.scores_lists:
            return None
        Z = np.zeros(W.shape)
        for client in problem.able.tolist():
            items, ratings = problem.ratings.of(client)
            w = W[client].astype(np.float64)
            span = slice(*problem.ratings.indptr[client : client + 2])
            weighed = None if recency is None else recency[span]
            Z[client] = model.list_weights(w, wide, items, ratings, problem.public, weighed)
        return Z


@remember_last
def in_turn(problem: Problem, config: Config) -> Problem:
    """The problem of a round in which some columns take part."""
    return replace(problem, config=config)


def item_columns(problem: Problem, V: NDArray[Any]) -> NDArray[Any]:
    """The public columns X that predictions X·w come from, in V's own precision."""
    model = problem.config.model
    X: NDArray[Any] = model.item_columns(V, problem.public)
    return X.astype(V.dtype, copy=False)


def engine_of(config: Config) -> Engine:
    """The engine that a config asks for.

    >>> engine_of(Config(engine="reference")).dtype.__name__
    'float64'
    """
    if config.engine not in ENGINES:
        raise unknown_name("engine", config.engine, ENGINES)
    module = importlib.import_module(f"fedrecplus.engines.{_chosen(config.engine)}")
    engine: Engine = module.engine(config)
    return engine


def _chosen(name: str) -> str:
    """The engine that a name stands for: ``auto`` is ``cuda`` where there is a card, else ``fast``."""
    if name != "auto":
        return name
    card = importlib.import_module("fedrecplus.engines.cuda")
    return "cuda" if card.has_card() else "fast"
