"""One round's replies: ask, collect until all, a quorum or the deadline, refuse what is late, twice or unsound.

Flower's ``send_and_receive`` sleeps three seconds between looks; this has its own push and pull, and looks often at
first and less often the longer nothing comes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fedrecplus.deploy.server.deployment import Deployment
from fedrecplus.deploy.server.misbehaviour import NodeRecords
from fedrecplus.deploy.wire import Packet, Refusal, RoundTerms, decode_reply
from fedrecplus.protocol import Upload

_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 0.5


class Link(Protocol):
    """What a round needs of the network. ``flower.messages.FlowerLink`` is Flower's, tests have their own."""

    def nodes(self) -> list[int]:
        """Nodes that are connected."""

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        """Send a packet to each node; returns message id → node."""

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Replies that came to these messages; a ``Refusal`` where there won't be one or it can't be read."""


@dataclass
class Collected:
    """What a round brought."""

    asked: dict[str, int]
    """message → node"""
    uploads: list[Upload] = field(default_factory=list)
    answered: dict[int, float] = field(default_factory=dict)
    """node → seconds until its reply"""
    lost: dict[int, str] = field(default_factory=dict)
    """node → why it sent nothing that counts"""
    bound: dict[int, list[int]] = field(default_factory=dict)
    """node → clients that it spoke for as the first"""
    squared_error: float = 0.0
    rated: int = 0
    bytes_up: int = 0

    @property
    def waiting(self) -> set[str]:
        """Messages without a reply."""
        done = self.answered.keys() | self.lost.keys()
        return {message for message, node in self.asked.items() if node not in done}


def collect(
    link: Link,
    packets: Mapping[int, Packet],
    terms: RoundTerms,
    deployment: Deployment,
    records: NodeRecords,
    overdue: dict[str, int],
    tell: Callable[[Collected], None],
) -> Collected:
    """Ask and collect. ``overdue`` has the messages of rounds that closed before; their replies are refused as late."""
    collected = Collected(link.ask(packets, deployment.deadline))
    started = time.monotonic()  # from here: sending V to many takes its time, and isn't theirs
    quorum = max(1, math.ceil(deployment.quorum * len(packets) - 1e-9))
    look = _SHORTEST_LOOK
    while collected.waiting and len(collected.answered) < quorum and time.monotonic() - started < deployment.deadline:
        came = link.replies(collected.waiting | overdue.keys())
        for message, packet in came:
            if message in collected.asked:
                node, seconds = collected.asked[message], time.monotonic() - started
                try:
                    _take(collected, node, packet, terms, records if deployment.keyed else None)
                    collected.answered[node] = seconds
                except Refusal as refusal:
                    records.note(node, refusal)
                    collected.lost[node] = refusal.kind
            elif message in overdue:
                node = overdue.pop(message)
                if isinstance(packet, Packet):
                    records.note(node, Refusal("late", "its round has closed", blame=False))
        tell(collected)
        look = _SHORTEST_LOOK if came else min(1.3 * look, _LONGEST_LOOK)
        if collected.waiting:
            time.sleep(look)
    overdue.update({message: collected.asked[message] for message in collected.waiting})
    collected.uploads.sort(key=lambda upload: upload.client)  # sums depend on the order in the last bit: fix it
    return collected


def _take(
    collected: Collected, node: int, packet: Packet | Refusal, terms: RoundTerms, records: NodeRecords | None
) -> None:
    """Add a reply's uploads, or raise ``Refusal``. ``records`` where nodes are known by their keys."""
    if isinstance(packet, Refusal):
        raise packet
    reply = decode_reply(packet, terms)
    clients = [upload.client for upload in reply.uploads]
    if not {upload.client for upload in collected.uploads}.isdisjoint(clients):
        raise Refusal("duplicate", "a client that has answered in this round")
    if records is not None:
        collected.bound[node] = records.bind(node, clients)
    collected.uploads += reply.uploads
    collected.bytes_up += reply.bytes
    if reply.report:
        collected.squared_error += reply.report.squared
        collected.rated += reply.report.ratings
