"""One round's answers: ask, gather until all, a quorum or the deadline, refuse what is late, twice or unsound.

Flower's ``send_and_receive`` sleeps three seconds between looks; this has its own push and pull, and looks often at
first and less often the longer nothing comes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fedrecplus.deploy.checks import Answer, Expected, Refusal, checked
from fedrecplus.deploy.packet import Packet
from fedrecplus.deploy.standing import Standing
from fedrecplus.protocol import Upload

_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 0.5


class Link(Protocol):
    """What a round needs of the network. ``messages.FlowerLink`` is Flower's, tests have their own."""

    def nodes(self) -> list[int]:
        """Nodes that are connected."""

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        """Send a packet to each node; returns message id → node."""

    def answers(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Answers that came to these messages; a ``Refusal`` where there won't be one or it can't be read."""


@dataclass
class Collected:
    """What a round brought."""

    asked: dict[str, int]
    uploads: list[Upload] = field(default_factory=list)
    answered: dict[int, float] = field(default_factory=dict)
    """node → seconds until its answer"""
    lost: dict[int, str] = field(default_factory=dict)
    """node → why it sent nothing that counts"""
    bound: dict[int, list[int]] = field(default_factory=dict)
    """node → clients that it spoke for as the first"""
    squared: float = 0.0
    rated: int = 0
    bytes_up: int = 0

    @property
    def waiting(self) -> set[str]:
        """Messages without an answer."""
        done = self.answered.keys() | self.lost.keys()
        return {message for message, node in self.asked.items() if node not in done}


def collect(
    link: Link,
    packets: Mapping[int, Packet],
    expected: Expected,
    standing: Standing,
    overdue: dict[str, int],
    tell: Callable[[Collected], None],
) -> Collected:
    """Ask and gather. ``overdue`` has the messages of rounds that closed before; their answers are refused as late."""
    deployment = expected.deployment
    gathered = Collected(link.ask(packets, deployment.deadline))
    started = time.monotonic()  # from here: sending V to many takes its time, and isn't theirs
    quorum = max(1, math.ceil(deployment.quorum * len(packets) - 1e-9))
    look = _SHORTEST_LOOK
    while gathered.waiting and len(gathered.answered) < quorum and time.monotonic() - started < deployment.deadline:
        came = link.answers(gathered.waiting | overdue.keys())
        for message, packet in came:
            if message in gathered.asked:
                _take(gathered, gathered.asked[message], packet, expected, standing, time.monotonic() - started)
            elif message in overdue:
                node = overdue.pop(message)
                if isinstance(packet, Packet):
                    standing.note(node, Refusal("late", "its round has closed", blame=False))
        tell(gathered)
        look = _SHORTEST_LOOK if came else min(1.3 * look, _LONGEST_LOOK)
        if gathered.waiting:
            time.sleep(look)
    overdue.update({message: gathered.asked[message] for message in gathered.waiting})
    gathered.uploads.sort(key=lambda upload: upload.client)  # sums depend on the order in the last bit: fix it
    return gathered


def _take(
    gathered: Collected, node: int, packet: Packet | Refusal, expected: Expected, standing: Standing, seconds: float
) -> None:
    try:
        if isinstance(packet, Refusal):
            raise packet
        answer = checked(packet, expected)
        _refuse_twice(gathered, answer)
        if expected.deployment.keyed:
            gathered.bound[node] = standing.bind(node, [upload.client for upload in answer.uploads])
    except Refusal as refusal:
        standing.note(node, refusal)
        gathered.lost[node] = refusal.kind
        return
    gathered.answered[node] = seconds
    gathered.uploads += answer.uploads
    gathered.bytes_up += answer.bytes
    if answer.report:
        gathered.squared += answer.report.squared
        gathered.rated += answer.report.ratings


def _refuse_twice(gathered: Collected, answer: Answer) -> None:
    before = {upload.client for upload in gathered.uploads}
    if any(upload.client in before for upload in answer.uploads):
        raise Refusal("duplicate", "a client that has answered in this round")
