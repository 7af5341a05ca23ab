"""A round's link to its nodes through the database: questions are rows of ``work``, which workers hand out.

A question waits in the database until its time is up or the next is asked: a node that was killed gets it again when it
is back, from whichever worker. Answers are sealed to a key that only this process has.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, func, insert, select

from fedrecplus.deploy.server.presence import present_nodes
from fedrecplus.deploy.server.schema import answers, objects, work
from fedrecplus.deploy.server.stored_run import CoordinatedRun, close_questions
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.questions import WorkItem, answer_context, object_digest, split
from fedrecplus.deploy.wire.sealing import SealingKey

_KEPT = 3600.0
"""seconds that an object outlives the question that named it"""
_MOST_IN_QUERY = 500


class DatabaseLink:
    """``server.Link`` over a database."""

    def __init__(self, run: CoordinatedRun) -> None:
        self.run, self.key = run, SealingKey()
        self._encoded: tuple[Packet, bytes, dict[str, str]] | None = None
        """the packet that was asked last, its small part, and its objects' names by kind"""

    def nodes(self) -> list[int]:
        """Nodes that are connected."""
        return self.run.database.patiently(lambda: present_nodes(self.run.database))

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
        """Put a question for each node into the database, in the place of those that were asked before."""
        now = self.run.database.patiently(self.run.database.time)
        until = now + seconds

        def write(connection: Connection) -> dict[int, int]:
            self._encoded, first = None, _next_number(connection)
            close_questions(connection)
            connection.execute(delete(objects).where(objects.c.until < now))
            rows: list[dict[str, Any]] = []
            for number, (node, packet) in enumerate(packets.items(), first):
                content, named = self._objects(connection, packet, until)
                question = WorkItem(number, node, until, self.key.public, content, named)
                facts = {"round": packet.facts["round"], "stage": packet.facts.get("stage", "upload")}
                facts |= {"id": number, "node": node, "run": self.run.number, "until": until}
                attempt = f"{self.run.lease.number}.{first}"
                rows.append({**facts, "attempt": attempt, "question": msgspec.msgpack.encode(question)})
            connection.execute(insert(work), rows)
            return {row["id"]: row["node"] for row in rows}

        return self.run.change(write)

    def replies(self, messages: Iterable[int]) -> list[tuple[int, Packet | Refusal]]:
        """Answers that came to these questions."""
        return [(number, self._opened(number, node, content)) for number, node, content in self._rows(sorted(messages))]

    def _rows(self, wanted: list[int]) -> list[tuple[int, int, bytes]]:
        def read() -> list[tuple[int, int, bytes]]:
            rows: list[tuple[int, int, bytes]] = []
            with self.run.database.reading() as connection:
                self.run.lease.check(connection)  # or else it waits for answers that nobody is asked for any more
                for first in range(0, len(wanted), _MOST_IN_QUERY):
                    some = wanted[first : first + _MOST_IN_QUERY]
                    query = select(work.c.id, work.c.node, answers.c.content).join(answers)
                    found = connection.execute(query.where(work.c.id.in_(some)))
                    rows += [(int(number), int(node), bytes(content)) for number, node, content in found]
            return rows

        return self.run.database.patiently(read)

    def _opened(self, number: int, node: int, content: bytes) -> Packet | Refusal:
        try:
            return Packet.of_bytes(self.key.open(content, answer_context(number, node)))
        except Refusal as refusal:
            return refusal

    def _objects(self, connection: Connection, packet: Packet, until: float) -> tuple[bytes, dict[str, str]]:
        """A packet's small part and the names of its objects, which are put where workers find them."""
        if self._encoded is None or self._encoded[0] is not packet:
            content, parts = split(packet)
            self._encoded = (packet, content, {kind: object_digest(part) for kind, part in parts.items()})
            for kind, part in parts.items():
                digest = self._encoded[2][kind]
                same = objects.c.digest == digest
                if connection.execute(select(objects.c.until).where(same)).first() is None:
                    connection.execute(insert(objects).values(digest=digest, content=part, until=until + _KEPT))
                else:
                    connection.execute(
                        objects.update().where(same & objects.c.until.is_not(None)).values(until=until + _KEPT)
                    )
        return self._encoded[1], self._encoded[2]


def _next_number(connection: Connection) -> int:
    """Questions are numbered upwards for ever, also after old ones were deleted: nodes ask for later ones."""
    last = connection.execute(select(func.max(work.c.id))).scalar() or 0
    return max(int(last) + 1, int(1e6 * time.time()))
