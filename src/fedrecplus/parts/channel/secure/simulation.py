"""A whole secure sum in one process: all clients, the server, and whoever vanishes in between.

Secrets come from the training's seed here, so that a simulation can be repeated: nothing is hidden from whoever knows
the seed. Real devices take theirs from the operating system.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from fedrecplus.parts.channel._ring import RingLayout, RingVector
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.messages import Refused
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.server_state import ServerOptions
from fedrecplus.randomness import subkey
from fedrecplus.workers import core_count

VANISHING = ("share", "mask", "reveal")
"""the stages that a client may not answer any more"""


@dataclass
class StageCost:
    """What one stage cost, over all clients."""

    bytes_up: int = 0
    bytes_down: int = 0
    client_seconds: float = 0.0
    """of all clients together, each measured by itself"""
    server_seconds: float = 0.0
    answers: int = 0


@dataclass
class Finished:
    """A sum that was finished."""

    total: RingVector
    survivors: tuple[int, ...]
    stages: dict[str, StageCost] = field(default_factory=dict)

    @property
    def bytes_up(self) -> int:
        """Sent by clients, in all stages."""
        return sum(stage.bytes_up for stage in self.stages.values())

    @property
    def bytes_down(self) -> int:
        """Received by clients, in all stages."""
        return sum(stage.bytes_down for stage in self.stages.values())


def secure_sum(
    vectors: Mapping[int, RingVector],
    layout: RingLayout,
    vanish: Mapping[int, str],
    options: ServerOptions,
    seed: int,
    fewest: int = 1,
) -> Finished:
    """The ring sum by the whole protocol; ``vanish`` says who doesn't answer a stage, nor any after it.

    ``server.Aborted`` where too few are left.
    """
    clients = {
        number: SecureClient(
            number, session_of(seed), layout, vector.rows, options.least_cohort, fewest,
            random_bytes=seeded_bytes(subkey(seed, "secure-root", number)),
        )
        for number, vector in vectors.items()
    }  # fmt: skip
    server = SecureServer(session_of(seed), layout, list(clients), options, shuffle=shuffling(seed))
    stages = {name: StageCost() for name in ("advertise", "share", "mask", "reveal")}
    calls: dict[str, Callable[[int, bytes], bytes]] = {
        "advertise": lambda number, _: clients[number].advertise(),
        "share": lambda number, asked: clients[number].share(asked),
        "mask": lambda number, asked: clients[number].mask(asked, vectors[number]),
        "reveal": lambda number, asked: clients[number].reveal(asked),
    }
    asked = dict.fromkeys(clients, b"")
    for name, stage in stages.items():
        gone = VANISHING[: VANISHING.index(name) + 1] if name in VANISHING else ()
        asked = {number: message for number, message in asked.items() if vanish.get(number) not in gone}
        asked = _run(name, calls[name], asked, server, stage)
    return Finished(server.total, server.survivors, stages)


def _run(
    name: str, call: Callable[[int, bytes], bytes], asked: dict[int, bytes], server: SecureServer, stage: StageCost
) -> dict[int, bytes]:
    """One stage: every client answers, on some threads, and the server takes the answers in order."""

    def answer(each: tuple[int, bytes]) -> tuple[int, bytes | None, float]:
        start = time.perf_counter()
        try:
            said: bytes | None = call(*each)
        except Refused:  # it says no more
            said = None
        return each[0], said, time.perf_counter() - start

    with ThreadPoolExecutor(core_count()) as pool:
        for number, said, seconds in pool.map(answer, asked.items()):
            if said is None:
                continue
            start = time.perf_counter()
            server.take(number, said)
            stage.server_seconds += time.perf_counter() - start
            stage.client_seconds += seconds
            stage.bytes_up += len(said)
            stage.bytes_down += len(asked[number])
            stage.answers += 1
    start = time.perf_counter()
    following = server.close()
    stage.server_seconds += time.perf_counter() - start
    return following


def session_of(seed: int) -> bytes:
    """The session of a simulated sum."""
    return hashlib.sha256(b"simulated session" + seed.to_bytes(8, "big")).digest()[:16]


def seeded_bytes(seed: int) -> Callable[[int], bytes]:
    """Bytes that follow from a seed, instead of the operating system's: for simulation alone."""
    return lambda size: hashlib.shake_256(b"simulated secret" + seed.to_bytes(8, "big")).digest(size)


def shuffling(seed: int) -> Callable[[list[int]], None]:
    """The ring's order in a simulation."""
    return random.Random(subkey(seed, "secure-ring")).shuffle
