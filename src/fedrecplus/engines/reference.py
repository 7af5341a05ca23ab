"""The reference engine: every client in turn through the client function, then the server function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines.interface import Clients, Engine
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, RoundReport, device_of, remember
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.rounds import client_round, pseudo_items, training_rows


class ReferenceEngine(Engine):
    """The readable rounds, in NumPy and float64."""

    def sums(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[Sums, PrivateState, RoundReport]:
        """One round of everybody's devices. Paper: Algorithm 1, lines 1–9"""
        uploads, private, peer_bytes = self._exchanged(problem, private, message, clients)
        sums, report = self.sums_of_uploads(problem, uploads, message, peer_bytes)
        return sums, private, report

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """See ``Engine.uploads``."""
        return self._exchanged(problem, private, message, clients)[:2]

    def _exchanged(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState, int]:
        """Everybody's upload, after clients have talked to each other where the channel lets them."""
        config, private = problem.config, private.copy()
        devices, uploads = {}, {}
        for client in clients.tolist():
            uploads[client], device = client_round(message, device_of(problem, private, client), config)
            remember(problem, private, device)
            devices[client] = device
        peer_bytes, channel = 0, config.channel
        if channel.exchanges:
            uploads, peer_bytes = channel.exchange(devices, uploads, message.round, config.seed)
        return list(uploads.values()), private, peer_bytes

    def item_sets(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> dict[int, NDArray[np.int64]]:
        """See ``Engine.item_sets``."""
        sets = {}
        for client in clients.tolist():
            device = device_of(problem, private, client)
            pseudo = pseudo_items(message, device, problem.config)
            sets[client] = training_rows(device, pseudo, len(message.V), problem.config).items
        return sets

    def user_weights(self, problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
        """See ``Engine.user_weights``."""
        model, wide = problem.config.model, X.astype(np.float64)
        weights = np.zeros((problem.ratings.clients, model.weight_count(X.shape[1], len(X))))
        for client in problem.able.tolist():
            items, ratings = problem.ratings.of(client)
            U = private.U[client].astype(np.float64)
            weights[client] = model.user_weights(U, wide, items, ratings, problem.public)
        return weights


def engine(config: Config) -> Engine:
    """The engine, in the only precision it has."""
    return ReferenceEngine("float64")
