"""The CUDA engine: all clients of a cohort at once on a graphics card.

Ratings, pseudo items and the clients' private state stay there between rounds, and so do the server's tables where its
half of a round runs there too (``tables.py``); otherwise V and its last step come in, and sums go out. Where single
uploads are looked at on the way to the sums, rounds run through the fast engine, and that is said once.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines.cuda import batches, fused as card_fused
from fedrecplus.engines.cuda.arrays import CardArray
from fedrecplus.engines.cuda.pseudo import CardPseudo, pseudo_rows
from fedrecplus.engines.cuda.ratings import CardRatings
from fedrecplus.engines.cuda.round import Cohort, Round, on_card
from fedrecplus.engines.cuda.tables import ServerTables, server_on_card
from fedrecplus.engines.fast import FastEngine, denoising, fused, ring
from fedrecplus.engines.fast.engine import in_one_sum, report_of, weighing_of
from fedrecplus.engines.fast.rows import items_of
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.interface import Clients, Engine, Recency
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, RoundReport, SimulationState, message_of
from fedrecplus.errors import EngineWarning
from fedrecplus.parts import Part
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.rounds import server_round


class CudaEngine(Engine):
    """All clients of a size class at once, in torch; fused steps of the factorisations in Triton."""

    def __init__(self, precision: str = "float32", deterministic: bool = False) -> None:
        super().__init__(precision)
        self.deterministic = deterministic
        self._on_processor = FastEngine(precision)
        self._ratings: tuple[Problem, CardRatings] | None = None
        self._cohort: Cohort | None = None
        self._server = ServerTables()

    def round(self, problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
        """See ``Engine.round``; the server's half on the card too, where it is sums and products of tables."""
        if not server_on_card(problem.config):
            return super().round(problem, state)
        clients, tables = problem.cohort(state.server.round), cast(Any, self._server.to_card(state.server))
        message = message_of(problem, state, clients)
        V, last_step = CardArray(tables.V, message.V), CardArray(tables.last_step, message.last_step)
        lazily: Any = {"V": V, "last_step": last_step}
        sums, private, report = self.sums(problem, state.private, replace(message, **lazily), clients)
        if isinstance(sums.total, np.ndarray):  # the round ran on the processor
            server = server_round(state.server, sums, problem.public, problem.config)
        else:
            server = self._server.from_card(server_round(tables, sums, problem.public, problem.config))
        return replace(state, server=server, private=private), report

    def sums(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[Sums, PrivateState, RoundReport]:
        """See ``Engine.sums``; sums stay on the card where V is there."""
        config, weighing = problem.config, weighing_of(problem.config, on_card(message))
        if weighing is None:
            missing = _looks_at_single_ones(config)
            say_on_processor(missing.kind, missing.rule)
            return self._on_processor.sums(problem, _on_host(private), _in_numpy(message), clients)
        ratings = self._ratings_of(problem, message)
        cohort = self._cohort_of(clients, ratings)
        private, pseudo = pseudo_rows(problem, private, message, cohort, ratings)
        at_once = fused.serves(config.model) and weighing.is_known

        def train(
            problem: Problem,
            private: PrivateState,
            message: Broadcast,
            pseudo: CardPseudo,
            weighing: Weighing,
            _: Clients,
        ) -> tuple[Sums, Any]:
            card_round = Round(problem, private, message, pseudo.rows, cohort, weighing, self.deterministic)
            sums, U = card_fused.train(card_round) if at_once else batches.train(card_round)
            return sums.on_card() if isinstance(message.V, CardArray) else sums.on_host(), U

        if ring.adds_up(config.channel):
            rows: Any = pseudo
            in_all, U, report = ring.ring_sums(problem, private, message, rows, weighing, clients, train)
            return in_all, replace(private, U=U), report
        in_all, U = train(problem, private, message, pseudo, weighing, clients)
        if cohort.report is None or denoising.counts(config.channel):
            rows = pseudo
            cohort.report = report_of(problem, message, clients, rows)  # by sizes: the same while the cohort is
        return in_all, replace(private, U=U), cohort.report

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """Single uploads are made on the processor: they have to be there."""
        return self._on_processor.uploads(problem, _on_host(private), message, clients)

    def item_sets(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> dict[int, NDArray[np.int64]]:
        """See ``Engine.item_sets``."""
        ratings = self._ratings_of(problem, message)
        cohort = Cohort.of(clients, ratings.counts(pseudo=True))
        pseudo: Any = pseudo_rows(problem, private, message, cohort, ratings)[1]
        return {client: items_of(problem, pseudo, client) for client in clients.tolist()}

    def user_weights(self, problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
        """See ``Engine.user_weights``."""
        ratings = self._ratings_of(problem, X)
        cohort = Cohort.of(problem.able, ratings.counts(pseudo=False))
        weights: Any = CardArray(batches.user_weights(problem, private, X, ratings, cohort))
        return cast(NDArray[Any], weights)

    def list_weights(
        self, problem: Problem, W: NDArray[Any], X: NDArray[Any], recency: Recency | None = None
    ) -> NDArray[Any] | None:
        """See ``Engine.list_weights``; once at a training's end, on the processor."""
        return self._on_processor.list_weights(problem, W, X, recency)

    def _ratings_of(self, problem: Problem, precise: Any) -> CardRatings:
        """The ratings on the card, copied once for a problem."""
        dtype = precise.V.dtype if isinstance(precise, Broadcast) else precise.dtype
        if self._ratings is None or not _same_ratings(self._ratings[0], problem):
            self._ratings, self._cohort = (problem, CardRatings.of(problem, dtype)), None
        known = self._ratings[1]
        return known._replace(levels=CardRatings.levels_of(problem, dtype)) if known.real != dtype else known

    def _cohort_of(self, clients: Clients, ratings: CardRatings) -> Cohort:
        """The cohort in size classes, sorted once as long as it is the same array."""
        if self._cohort is None or self._cohort.clients is not clients:
            self._cohort = Cohort.of(clients, ratings.counts(pseudo=True))
        return self._cohort


def _same_ratings(one: Problem, other: Problem) -> bool:
    """Whether what the card has of a problem is that of another, too: tables that take turns have a config each."""
    same = (one.ratings, one.pseudo_indptr, one.secrets), (other.ratings, other.pseudo_indptr, other.secrets)
    return all(first is second for first, second in zip(*same, strict=True)) and (one.ages is None) == (
        other.ages is None
    )


def _on_host(private: PrivateState) -> PrivateState:
    """The private state as NumPy arrays."""
    return PrivateState(*(np.asarray(array) for array in vars(private).values()))


def _in_numpy(message: Broadcast) -> Broadcast:
    """The broadcast in NumPy arrays."""
    return replace(message, V=np.asarray(message.V), last_step=np.asarray(message.last_step))


def _looks_at_single_ones(config: Config) -> Part[Any]:
    """The first part, in the order of a round, that keeps updates from being added up as they are made."""
    if config.privacy.protects:
        return config.privacy
    return config.channel if in_one_sum(config.aggregation) else config.aggregation


@functools.cache
def say_on_processor(kind: str, rule: str) -> None:
    """Say once that a rule runs through the fast engine."""
    text = f"{kind}.rule = {rule!r} looks at single uploads: its rounds run on the processor"
    warnings.warn(text, EngineWarning, stacklevel=2)
