"""The fast engine: all clients of a cohort at once, in batches under threads.

It gives what the reference gives: the parts' own functions run over batches of clients. Where the parts on the way to
the sums allow it, updates are weighed and added up as they are made; otherwise they are kept apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines.fast import denoising, fused, ring
from fedrecplus.engines.fast.batches import BatchedRound, train, updates_of
from fedrecplus.engines.fast.chunks import keep_memory
from fedrecplus.engines.fast.pseudo import pseudo_rows
from fedrecplus.engines.fast.rows import PseudoRows, for_rated, in_rows, items_of
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.interface import Clients, Engine, Recency
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, RoundReport, device_of
from fedrecplus.parts.aggregation import Aggregation, WeightedAggregation
from fedrecplus.parts.channel import SummingChannel
from fedrecplus.protocol import BYTES_PER_NUMBER, Broadcast, Sums, Upload
from fedrecplus.rounds import outgoing


class FastEngine(Engine):
    """Each part's own file over batches of clients; fused steps of the factorisations where they serve."""

    def __init__(self, precision: str = "float64") -> None:
        super().__init__(precision)
        keep_memory()

    def sums(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[Sums, PrivateState, RoundReport]:
        """See ``Engine.sums``."""
        weighing = weighing_of(problem.config, message)
        if weighing is None:
            uploads, private, peer_bytes = self._exchanged(problem, private, message, clients)
            in_all, report = self.sums_of_uploads(problem, uploads, message, peer_bytes)
            return in_all, private, report
        private, pseudo = pseudo_rows(problem, private, message, clients)
        if ring.adds_up(problem.config.channel):
            sums, U, report = ring.ring_sums(problem, private, message, pseudo, weighing, clients, train)
            return sums, replace(private, U=U), report
        at_once = fused.serves(problem.config.model) and weighing.is_known
        sums, U = (fused.train if at_once else train)(problem, private, message, pseudo, weighing, clients)
        return sums, replace(private, U=U), report_of(problem, message, clients, pseudo)

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """See ``Engine.uploads``."""
        return self._exchanged(problem, private, message, clients)[:2]

    def _exchanged(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState, int]:
        config, channel = problem.config, problem.config.channel
        private, pseudo = pseudo_rows(problem, private, message, clients)
        batched = BatchedRound(problem, private, message, pseudo)
        updates, private = updates_of(batched, clients), replace(private, U=batched.U)
        sent = {each.client: outgoing(each, int(problem.secrets[each.client]), message, config) for each in updates}
        if not channel.exchanges:
            return list(sent.values()), private, 0
        devices = {client: device_of(problem, private, client) for client in clients.tolist()}
        sent, peer_bytes = channel.exchange(devices, sent, message.round, config.seed)
        return list(sent.values()), private, peer_bytes

    def item_sets(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> dict[int, NDArray[np.int64]]:
        """See ``Engine.item_sets``."""
        _, pseudo = pseudo_rows(problem, private, message, clients)
        return {client: items_of(problem, pseudo, client) for client in clients.tolist()}

    def user_weights(self, problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
        """See ``Engine.user_weights``."""
        model = problem.config.model
        weights = np.zeros((problem.ratings.clients, model.weight_count(X.shape[1], len(X))), X.dtype)

        def solve(clients: Clients, items: NDArray[np.int64], ratings: NDArray[Any]) -> None:
            weights[clients] = model.user_weights(private.U[clients], X, items, ratings, problem.public)

        for_rated(problem, X.dtype, solve)
        return weights

    def list_weights(
        self, problem: Problem, W: NDArray[Any], X: NDArray[Any], recency: Recency | None = None
    ) -> NDArray[Any] | None:
        """See ``Engine.list_weights``."""
        weights, model = np.zeros(W.shape, W.dtype), problem.config.model
        if not model.scores_lists:
            return None

        def solve(clients: Clients, items: NDArray[np.int64], ratings: NDArray[Any]) -> None:
            weighed = None if recency is None else in_rows(recency.astype(X.dtype), clients, problem.ratings.indptr)
            weights[clients] = model.list_weights(W[clients], X, items, ratings, problem.public, weighed)

        for_rated(problem, X.dtype, solve)
        return weights


def engine(config: Config) -> Engine:
    """The engine, in the precision that the config asks for."""
    return FastEngine(config.precision)


def weighing_of(config: Config, message: Broadcast) -> Weighing | None:
    """How updates are weighed as they are made; nothing where single ones are looked at on the way to the sums."""
    rule, channel = config.aggregation, config.channel
    if not in_one_sum(rule) or config.privacy.protects:
        return None
    weighing = Weighing.of(rule.by_distance(message))
    if denoising.counts(channel):
        return weighing._replace(rated_rows_only=True)  # noise that is added and taken out again need not be computed
    if channel.protects or channel.exchanges or isinstance(channel, SummingChannel):
        return weighing if ring.adds_up(channel) else None
    return weighing


def in_one_sum(rule: Aggregation[Any]) -> TypeGuard[WeightedAggregation[Any]]:
    """Whether a rule weighs each update as it is made, and nothing else is asked of it."""
    weighs = isinstance(rule, WeightedAggregation)
    return weighs and not rule.against_mean and rule.covariance_kind == "none"


def report_of(problem: Problem, message: Broadcast, clients: Clients, pseudo: PseudoRows) -> RoundReport:
    """What the uploads of the reference would have cost, counted from their sizes."""
    config = problem.config
    if denoising.counts(config.channel):
        return denoising.report_of(problem, message, clients, pseudo)
    rows = np.diff(problem.ratings.indptr)[clients] + np.diff(pseudo.indptr)[clients]
    if config.model.ALL_ITEMS:
        rows[:] = len(message.V)
    beside = config.model.statistic_size + config.aggregation.weighs_on_client  # its own weight
    up = BYTES_PER_NUMBER * (int(rows.sum()) * (1 + message.V.shape[1]) + len(clients) * beside)
    return RoundReport(len(clients), up, len(clients) * message.bytes)
