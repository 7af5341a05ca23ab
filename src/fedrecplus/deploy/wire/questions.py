"""A question as a server hands it out: small facts in it, tables beside it as objects named by their digests.

An object never changes, so proxies may keep it for everybody: V goes over the wire once to each cache. A node fetches
the objects that it lacks, looks at their digests, and has the packet that was asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection

import msgspec

from fedrecplus.deploy.wire.packet import Packet, Refusal

CATALOGUE, TABLES = "catalogue", "tables"
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
        for kind, digest in self.objects.items():
            if kind not in known:
                content = fetch(digest)
                if object_digest(content) != digest:
                    raise Refusal("request", "an object of another digest")
                arrays.update(Packet.of_bytes(content).arrays)
        return Packet(packet.facts, {**packet.arrays, **arrays})


def answer_context(work: int, node: int) -> bytes:
    """Which question of which node."""
    return f"{work} {node}".encode()


def object_digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def split(packet: Packet) -> tuple[bytes, dict[str, bytes]]:
    """A packet's small part, and its objects by kind: the catalogue, and the round's tables."""
    catalogue = {name: table for name, table in packet.arrays.items() if name.startswith(_PREFIX)}
    tables = {name: table for name, table in packet.arrays.items() if name not in catalogue}
    objects = {CATALOGUE: Packet({}, catalogue).to_bytes()} if catalogue else {}
    if "message" not in tables and sum(table.nbytes for table in tables.values()) > _INLINE:
        objects[TABLES] = Packet({}, tables).to_bytes()
        tables = {}
    return Packet(packet.facts, tables).to_bytes(), objects


def told_bytes(packet: Packet) -> int:
    """Bytes of arrays that every node fetches for a packet; the catalogue comes once."""
    return sum(table.nbytes for name, table in packet.arrays.items() if not name.startswith(_PREFIX))
