"""A question as a server hands it out: small facts in it, tables beside it as objects named by their digests.

An object never changes, so proxies may keep it for everybody: V goes over the wire once to each cache. A node fetches
the objects that it lacks, looks at their digests, and has the packet that was asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from typing import Any

import msgspec
from numpy.typing import NDArray

from fedrecplus.deploy.wire.log import LOG
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.steps import SUM

CATALOGUE, TABLES, SUMS = "catalogue", "tables", "sums"
_PREFIX = f"{CATALOGUE}."
_INLINE = 4096
"""bytes of arrays that travel within the question"""


class WorkItem(msgspec.Struct, frozen=True):
    """What a node is asked, and the key that its answer is sealed to."""

    id: int
    node: int
    until: float
    """seconds since 1970, by the server's clock"""
    seal: bytes
    packet: bytes
    objects: dict[str, str]
    """kind → digest"""

    @property
    def context(self) -> bytes:
        """What the sealed answer is bound to."""
        return answer_context(self.id, self.node)

    def whole(self, fetch: Callable[[str], bytes], known: Collection[str]) -> Packet:
        """The packet with its objects, but for kinds that are known already."""
        packet, arrays = Packet.of_bytes(self.packet), {}
        for kind in self.objects:
            if kind not in known:
                arrays.update(self.object(kind, fetch).arrays)
        return Packet(packet.facts, {**packet.arrays, **arrays})

    def object(self, kind: str, fetch: Callable[[str], bytes]) -> Packet:
        """One of its objects, if it is the one that the question names."""
        content = fetch(self.objects[kind])
        if object_digest(content) != self.objects[kind]:
            raise Refusal("request", "an object of another digest")
        return Packet.of_bytes(content)


def answer_context(work: int, node: int) -> bytes:
    """Which question of which node."""
    return f"{work} {node}".encode()


def object_digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def split(packet: Packet) -> tuple[bytes, dict[str, bytes]]:
    """A packet's small part, and its objects by kind: the catalogue, the round's tables, the sums behind them."""
    kinds = {CATALOGUE: _of_prefix(packet, _PREFIX), SUMS: _of_prefix(packet, SUM)}
    objects = {kind: Packet({}, arrays).to_bytes() for kind, arrays in kinds.items() if arrays}
    small = _of_prefix(packet, LOG)
    beside = {name for arrays in (*kinds.values(), small) for name in arrays}
    tables = {name: table for name, table in packet.arrays.items() if name not in beside}
    if "message" not in tables and sum(table.nbytes for table in tables.values()) > _INLINE:
        objects[TABLES] = Packet({}, tables).to_bytes()
        tables = {}
    return Packet(packet.facts, {**small, **tables}).to_bytes(), objects


def _of_prefix(packet: Packet, prefix: str) -> dict[str, NDArray[Any]]:
    return {name: table for name, table in packet.arrays.items() if name.startswith(prefix)}


def told_bytes(packet: Packet) -> int:
    """Bytes of arrays that every node fetches for a packet: tables or sums. The catalogue comes once."""
    return sum(table.nbytes for name, table in packet.arrays.items() if not name.startswith((_PREFIX, SUM)))
