"""An actor: it reads shards where it is, runs their clients' half of a round, and gives back sums and a snapshot."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import Ratings, Shard, ShardFolder, read_shard
from fedrecplus.engines.interface import Engine, engine_of, in_turn, item_columns
from fedrecplus.engines.problem import Problem, prepare
from fedrecplus.engines.ray.connection import ray_module
from fedrecplus.engines.state import PRIVATE_ARRAYS, PrivateState, RoundReport, start_private
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload
from fedrecplus.randomness import keys, subkey
from fedrecplus.rounds import encode_items
from fedrecplus.workers import THREADS

Clients = NDArray[np.int64]
Box = tuple[Any, ...]
"""an object's reference, or nothing: what is inside a tuple is fetched when the worker wants it, not before"""


@dataclass(frozen=True)
class FileShard:
    """A shard in a folder: whoever works on it reads it there."""

    folder: ShardFolder
    shard: Shard
    fold: int | None
    """ratings of this fold are for tests"""

    @property
    def first(self) -> int:
        """Number of its first client."""
        return self.shard.first


@dataclass(frozen=True)
class HeldShard:
    """A shard of ratings that were in memory, by its reference in Ray's object store."""

    first: int
    ratings: Box


@dataclass(frozen=True)
class Setup:
    """What is the same in all rounds, for all shards."""

    config: Config
    """with the engine that runs inside"""
    public: PublicItems
    shards: tuple[FileShard | HeldShard, ...]


@dataclass(frozen=True)
class Place:
    """A shard's private state: a number that is new in each round, and where its arrays are."""

    shard: int
    version: int
    """0: as it was before the first round"""
    U: Box = ()
    kept: Box = ()
    """which clients have drawn, their pseudo items and virtual ratings; nothing where nobody has"""
    lost: bool = False
    """the arrays were lost with a machine: solve for U again"""


@dataclass(frozen=True)
class ShardView:
    """A shard as functions that look at it get it."""

    engine: Engine
    problem: Problem
    private: PrivateState
    first: int
    test: Ratings | None


Look = Callable[[ShardView, Any, Any], Any]
"""a shard, what all shards are told, what this one is told → the answer; a function of a module, by name"""


@dataclass(frozen=True)
class ShardOutcome:
    """What came of a call."""

    answer: Any
    """sums, uploads, or what a function gave"""
    report: RoundReport | None
    drawn: NDArray[np.bool_] | None
    """where that has changed"""
    seconds: float
    worker: str


@dataclass(frozen=True)
class _Loaded:
    problem: Problem
    test: Ratings | None


class Worker:
    """One process of a cluster. It may be killed at any time: nothing that matters is here alone."""

    def __init__(self, name: str, threads: int, room: int) -> None:
        os.environ[THREADS] = str(threads)
        self.name, self._room = name, room
        self._setup: tuple[Any, Setup] | None = None
        self._broadcast: tuple[Any, Any] = (None, None)
        self._loaded: dict[int, _Loaded] = {}
        self._states: dict[int, tuple[int, PrivateState]] = {}
        self._seconds, self._calls, self._at = 0.0, 0, "waiting"

    def status(self) -> dict[str, Any]:
        """Who it is and what it does, whatever else it does meanwhile."""
        return {
            "worker": self.name,
            "pid": os.getpid(),
            "machine": platform.node(),
            "shards": len(self._loaded),
            "calls": self._calls,
            "seconds": self._seconds,
            "processor seconds": time.process_time(),
            "at": self._at,
            "peak GB": _peak(),
        }

    def train(
        self, setup: Box, place: Place, message: Box, clients: Clients | None, version: int, single: bool
    ) -> tuple[ShardOutcome, NDArray[Any], Box | None]:
        """The clients' half of a round; besides, the new U and, where it is not as before, what else clients keep.

        ``clients`` are numbers within the shard; None: everybody with ratings.
        """
        began = self._begin(f"round, shard {place.shard}")
        shared, loaded = self._shared(setup), self._shard(setup, place.shard)
        engine, problem = engine_of(shared.config), loaded.problem
        turn = shared.config.model.turn(shared.config, self._message(message).round)
        problem = problem if turn is None else in_turn(problem, turn.config)
        broadcast = replace(self._message(message), public=shared.public)
        if place.lost and not broadcast.features.size:
            broadcast = replace(broadcast, features=encode_items(broadcast.V, shared.public, shared.config))
        before = self._private(engine, problem, shared, place, broadcast)
        asked = problem.able if clients is None else np.array(clients)
        answer: Sums | list[Upload]
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for by the driver
            if single:
                uploads, after = engine.uploads(problem, before, broadcast, asked)
                first, report = shared.shards[place.shard].first, None
                answer = [replace(one, client=one.client + first) for one in uploads]
            else:
                answer, after, report = engine.sums(problem, before, broadcast, asked)
        self._remember(place.shard, version, after)
        kept = tuple(getattr(after, name) for name in PRIVATE_ARRAYS[1:])
        same = not place.lost and all(getattr(before, name) is getattr(after, name) for name in PRIVATE_ARRAYS[1:])
        outcome = ShardOutcome(answer, report, None if same else after.drawn, self._end(began), self.name)
        return outcome, after.U, None if same else kept

    def look(self, setup: Box, place: Place, function: Look, shared: Box, own: Any) -> ShardOutcome:
        """Ask a function about a shard; its private state stays as it is."""
        began = self._begin(f"{function.__name__}, shard {place.shard}")
        everywhere, loaded = self._shared(setup), self._shard(setup, place.shard)
        engine = engine_of(everywhere.config)
        private = self._private(engine, loaded.problem, everywhere, place, None)
        self._remember(place.shard, place.version, private)
        first = everywhere.shards[place.shard].first
        view = ShardView(engine, loaded.problem, private, first, loaded.test)
        answer = function(view, self._message(shared) if shared else None, own)
        return ShardOutcome(answer, None, None, self._end(began), self.name)

    def _begin(self, what: str) -> float:
        self._at = what
        return time.perf_counter()

    def _end(self, began: float) -> float:
        taken = time.perf_counter() - began
        self._seconds, self._calls, self._at = self._seconds + taken, self._calls + 1, "waiting"
        return taken

    def _shared(self, box: Box) -> Setup:
        """The setup, fetched once."""
        if self._setup is None or self._setup[0] != box[0]:
            setup: Setup = ray_module().get(box[0])
            self._setup, self._loaded, self._states = (box[0], replace(setup, public=_own(setup.public))), {}, {}
        return self._setup[1]

    def _message(self, box: Box) -> Any:
        """What all shards are told in a round, fetched once and copied: kernels want arrays of their own."""
        if self._broadcast[0] != box[0]:
            self._broadcast = (box[0], _own(ray_module().get(box[0])))
        return self._broadcast[1]

    def _shard(self, setup: Box, number: int) -> _Loaded:
        """A shard's ratings: kept, as long as there is room, or read again."""
        if number in self._loaded:
            return self._loaded[number]
        shared = self._shared(setup)
        source, test = shared.shards[number], None
        if isinstance(source, FileShard):
            whole = read_shard(source.folder, source.shard)
            if source.fold is not None and whole.folds is not None:
                tested = np.asarray(whole.folds == source.fold)
                whole, test = whole.where(~tested), whole.where(tested)
            ratings = replace(whole, folds=None, **told_order(whole, shared.config))
        else:
            ratings = _own(ray_module().get(source.ratings[0]))
        secrets = keys(subkey(shared.config.seed, "secrets"), source.first + np.arange(ratings.clients))
        loaded = _Loaded(prepare(ratings, shared.config, shared.public, secrets), test)
        if self._room == 0 or len(self._loaded) < self._room:
            self._loaded[number] = loaded
        return loaded

    def _private(
        self, engine: Engine, problem: Problem, shared: Setup, place: Place, message: Broadcast | None
    ) -> PrivateState:
        """The shard's private state: what is at hand, the snapshot, or the start."""
        version, at_hand = self._states.get(place.shard, (-1, None))
        if at_hand is not None and version == place.version and not place.lost:
            return at_hand
        start = start_private(problem, engine.dtype, shared.shards[place.shard].first)
        if place.lost:
            return start if message is None else replace(start, U=solved_again(problem, start, message))
        U = np.array(ray_module().get(place.U[0])) if place.U else start.U
        if not place.kept:
            return replace(start, U=U)
        return PrivateState(U, *(np.array(table) for table in ray_module().get(place.kept[0])))

    def _remember(self, shard: int, version: int, private: PrivateState) -> None:
        if shard in self._loaded:
            self._states[shard] = (version, private)


def told_order(ratings: Ratings, config: Config) -> dict[str, Any]:
    """Times and places in the source, which cost memory, where the model looks at the order."""
    wanted = "order" in config.model.NEEDS
    return {name: getattr(ratings, name) if wanted else None for name in ("timestamps", "order")}


def solved_again(problem: Problem, start: PrivateState, message: Broadcast) -> NDArray[Any]:
    """U of clients whose snapshot is gone: what their ratings and the present V say, else the start.

    A model that keeps nothing on devices loses nothing. Ours: gradient steps go on from a fold-in, which is near where
    they were and not the same.
    """
    model, U = problem.config.model, start.U.copy()
    X = item_columns(problem, message.V).astype(np.float64)
    if U.shape[1] != model.weight_count(X.shape[1], len(X)):
        return U
    for client in problem.able.tolist():
        items, ratings = problem.ratings.of(client)
        U[client] = model.newcomer(X, message.dense, items, ratings, problem.public)
    return U


def _peak() -> float:
    """The most memory that this process ever held, in GB; 0 where the system doesn't tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("VmHWM"))


def _own(thing: Any) -> Any:
    """A dataclass or an array with arrays that may be written to: those in Ray's store may not."""
    if isinstance(thing, np.ndarray):
        return np.array(thing)
    if not hasattr(thing, "__dataclass_fields__"):
        return thing
    arrays = {name: np.array(value) for name, value in vars(thing).items() if isinstance(value, np.ndarray)}
    return replace(thing, **arrays)
