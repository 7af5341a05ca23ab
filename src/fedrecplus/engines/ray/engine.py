"""The engine: a round is one message to all shards, and one sum over them in the order of their numbers.

State is passed, not kept: each shard's U comes back as an object that the driver owns, so it is the snapshot from which
another worker goes on. Floating-point sums depend on their order, which is that of shards: how many workers there are,
and which of them died, changes no bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines import cuda
from fedrecplus.engines.interface import Clients, Engine, Recency
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.ray.cluster import Cluster
from fedrecplus.engines.ray.private import ShardedPrivate, kept_places
from fedrecplus.engines.ray.setup import check_runs_on_shards, first_clients, setup_of
from fedrecplus.engines.ray.worker import Look, Place, ShardOutcome, ShardView
from fedrecplus.engines.state import PRIVATE_ARRAYS, PrivateState, RoundReport, SimulationState
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload
from fedrecplus.rounds import start_server

_KEPT = PRIVATE_ARRAYS[1:]
_NOBODY = PublicItems(np.zeros((0, 0)), np.zeros(0, np.int64))
"""what a message has in place of public things, which workers have already"""


class RayEngine(Engine):
    """Shards on workers, each with another engine inside."""

    def __init__(self, config: Config) -> None:
        super().__init__(_precision_of(config))
        self._problem: Problem | None = None
        self._cluster: Cluster | None = None
        self._firsts = np.zeros(0, np.int64)
        self._versions = itertools.count(1)

    def cluster_of(self, problem: Problem) -> Cluster:
        """The workers for a problem, started when it is first met."""
        if self._cluster is None or self._problem is None or not _same_setup(self._problem, problem):
            self._cluster, self._problem = Cluster(lambda ray: setup_of(ray, problem)), problem
            self._firsts = np.array([*first_clients(problem), problem.ratings.clients])
        return self._cluster

    def start(self, problem: Problem) -> SimulationState:
        """The state before the first round."""
        cluster = self.cluster_of(problem)
        private = self._sharded(problem, [Place(shard, 0) for shard in range(cluster.shards)], _nobody(problem))
        return SimulationState(start_server(problem.config, problem.public, self.dtype), private)

    def sums(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[Sums, PrivateState, RoundReport]:
        """See ``Engine.sums``."""
        whole: Sums | None = None
        reports, seconds = [], dict[str, float]()

        def take(outcome: ShardOutcome) -> None:
            nonlocal whole
            whole = added(whole, outcome.answer)
            reports.append(outcome.report)
            seconds[outcome.worker] = seconds.get(outcome.worker, 0.0) + outcome.seconds

        private = self._train(problem, private, message, clients, take, single=False)
        up, down = (sum(getattr(each, name) for each in reports) for name in ("bytes_up", "bytes_down"))
        assert whole is not None, "there is no cluster without shards"
        sums = replace(whole, total=whole.total.astype(message.V.dtype))
        return sums, private, RoundReport(len(clients), up, down, seconds)

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """See ``Engine.uploads``."""
        uploads: list[Upload] = []
        private = self._train(problem, private, message, clients, lambda one: uploads.extend(one.answer), single=True)
        return uploads, private

    def _train(
        self,
        problem: Problem,
        private: PrivateState,
        message: Broadcast,
        clients: Clients,
        take: Callable[[ShardOutcome], None],
        *,
        single: bool,
    ) -> ShardedPrivate:
        """The clients' half of a round; ``take`` gets every shard's outcome, in the order of shards."""
        cluster, before = self.cluster_of(problem), self._given(problem, private)
        boxed, by_shard = (cluster.ray.put(replace(message, public=_NOBODY)),), self._of_shards(problem, clients)
        version = next(self._versions)

        def submit(actor: Any, shard: int, lost: bool) -> Sequence[Any]:
            place, call = replace(before.places[shard], lost=lost), actor.train.options(num_returns=3)
            refs: Sequence[Any] = call.remote(cluster.setup, place, boxed, by_shard[shard], version, single)
            return refs

        places, drawn = [], before.drawn
        for shard, outcome, (U, kept) in cluster.gather(submit):
            old = before.places[shard]
            if outcome.drawn is not None:
                drawn = drawn.copy() if drawn is before.drawn else drawn
                drawn[self._firsts[shard] : self._firsts[shard + 1]] = outcome.drawn
            places.append(Place(shard, version, (U,), old.kept if outcome.drawn is None else (kept,)))
            take(outcome)
        return self._sharded(problem, places, drawn)

    def look(
        self,
        problem: Problem,
        private: PrivateState,
        function: Look,
        shared: Any = None,
        own: Sequence[Any] | None = None,
    ) -> list[Any]:
        """What a function says of each shard, in order; it runs where the shard is."""
        cluster, places = self.cluster_of(problem), self._given(problem, private).places
        boxed = () if shared is None else (cluster.ray.put(shared),)

        def submit(actor: Any, shard: int, lost: bool) -> Sequence[Any]:
            place = replace(places[shard], lost=lost)
            return (actor.look.remote(cluster.setup, place, function, boxed, None if own is None else own[shard]),)

        return [outcome.answer for _, outcome, _ in cluster.gather(submit)]

    def item_sets(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> dict[int, NDArray[np.int64]]:
        """See ``Engine.item_sets``."""
        self.cluster_of(problem)
        by_shard = [self._local(clients, shard) for shard in range(len(self._firsts) - 1)]
        of_shards = self.look(problem, private, _item_sets, replace(message, public=_NOBODY), by_shard)
        return {client: items for sets in of_shards for client, items in sets.items()}

    def user_weights(self, problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
        """See ``Engine.user_weights``."""
        return np.concatenate(self.look(problem, private, _user_weights, X))

    def list_weights(
        self, problem: Problem, W: NDArray[Any], X: NDArray[Any], recency: Recency | None = None
    ) -> NDArray[Any] | None:
        """See ``Engine.list_weights``."""
        if not problem.config.model.scores_lists:
            return None
        rows: list[Any] = [None] * len(self._firsts[1:])
        if recency is not None:
            rows = np.split(recency, problem.ratings.indptr[np.asarray(self._firsts[1:-1], dtype=np.int64)])
        parts = list(zip(np.split(W, self._firsts[1:-1]), rows, strict=True))
        places = [Place(shard, 0) for shard in range(len(parts))]
        private = self._sharded(problem, places, _nobody(problem))
        return np.concatenate(self.look(problem, private, _list_weights, X, parts))

    def _sharded(self, problem: Problem, places: Sequence[Place], drawn: NDArray[np.bool_]) -> ShardedPrivate:
        def ask(private: PrivateState, function: Look, shared: Any) -> list[Any]:
            return self.look(problem, private, function, shared)

        return ShardedPrivate(places, drawn, ask)

    def _given(self, problem: Problem, private: PrivateState) -> ShardedPrivate:
        """Private states in shards; arrays, from a checkpoint, are cut and sent to where they belong."""
        if isinstance(private, ShardedPrivate):
            return private
        cluster = self.cluster_of(problem)
        start = self._sharded(problem, [Place(shard, 0) for shard in range(cluster.shards)], private.drawn)
        ends = np.cumsum(self.look(problem, start, kept_places), axis=0)[:-1]
        cut = [np.split(private.U, self._firsts[1:-1]), np.split(private.drawn, self._firsts[1:-1])]
        cut += [np.split(getattr(private, name), ends[:, place]) for place, name in enumerate(_KEPT[1:])]
        put, version = cluster.ray.put, next(self._versions)
        places = [
            Place(shard, version, (put(U),), (put(tuple(kept)),))
            for shard, (U, *kept) in enumerate(zip(*cut, strict=True))
        ]
        return self._sharded(problem, places, private.drawn)

    def _of_shards(self, problem: Problem, clients: Clients) -> list[Clients | None]:
        """The cohort by shard; None where it is everybody, so that nothing need be sent."""
        able = np.diff(problem.ratings.indptr) > 0
        cohort = []
        for shard, (first, end) in enumerate(itertools.pairwise(self._firsts)):
            local = self._local(clients, shard)
            cohort.append(None if len(local) == np.count_nonzero(able[first:end]) else local)
        return cohort

    def _local(self, clients: Clients, shard: int) -> Clients:
        first, end = np.searchsorted(clients, self._firsts[shard : shard + 2])
        return np.asarray(clients[first:end] - self._firsts[shard])


def added(whole: Sums | None, part: Sums) -> Sums:
    """One shard's sums more, in 64 bits."""
    return replace(part, total=part.total.astype(np.float64)) if whole is None else whole.plus(part)


def _same_setup(whole: Problem, problem: Problem) -> bool:
    """Whether workers know the problem; whose turn it is in a round, they know from its number."""
    turn = whole.config.model.turn(whole.config, 0)
    in_turn = turn is not None and not isinstance(problem.config.model, type(whole.config.model))
    return problem is whole or (in_turn and problem.ratings is whole.ratings and problem.public is whole.public)


def engine(config: Config) -> Engine:
    """The engine, if the training is a sum over shards."""
    check_runs_on_shards(config)
    return RayEngine(config)


def _precision_of(config: Config) -> str:
    """That of the engine inside."""
    if config.cluster.engine == "cuda":
        return cuda.precision_of(config)
    return "float64" if config.cluster.engine == "reference" else config.precision


def _nobody(problem: Problem) -> NDArray[np.bool_]:
    return np.zeros(problem.ratings.clients, dtype=bool)


def _user_weights(view: ShardView, shared: Any, own: Any) -> NDArray[Any]:
    return view.engine.user_weights(view.problem, view.private, shared)


def _list_weights(view: ShardView, shared: Any, own: Any) -> NDArray[Any] | None:
    W, recency = own
    return view.engine.list_weights(view.problem, np.array(W), shared, recency)


def _item_sets(view: ShardView, shared: Broadcast, own: Clients) -> dict[int, NDArray[np.int64]]:
    message = replace(shared, public=view.problem.public)
    sets = view.engine.item_sets(view.problem, view.private, message, np.array(own))
    return {client + view.first: items for client, items in sets.items()}
