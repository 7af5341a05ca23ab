"""One round's replies: ask, collect until all, a quorum or the deadline, refuse what is late, twice or unsound."""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedrecplus.deploy.server.cohort import ALL, DEADLINE, ENOUGH
from fedrecplus.deploy.server.stored_run import CoordinatedRun
from fedrecplus.deploy.server.terms import Deployment
from fedrecplus.deploy.wire import Packet, Refusal, RoundTerms, decode_reply
from fedrecplus.protocol import Upload

log = logging.getLogger("fedrecplus")
_SHORTEST_LOOK, _LONGEST_LOOK, _SHARE, _PER_LOOK = 0.05, 5.0, 0.1, 3.0
"""seconds between looks for replies: a tenth of what the round has taken, so that long rounds cost few looks, and some
times what the last look took, so that a busy server has time for its nodes"""
_LINGER = 2.0
"""seconds without another answer, or as many as the median answer took, after which nobody is waited for"""


class Link(Protocol):
    """What a round needs of the network. ``server.link.DatabaseLink`` is the real one, tests have their own."""

    def nodes(self) -> list[int]:
        """Nodes that are connected."""

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        """Send a packet to each node; returns message id → node. Who comes back within that time gets it still."""

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Replies that came to these messages; a ``Refusal`` where there won't be one or it can't be read."""


@dataclass
class NodeRecords:
    """Who was refused how often, who is set aside, who speaks for whom; survives a restart in the journal."""

    limit: int
    """strikes after which a node is set aside"""
    persons: int = 100_000
    """most persons that one node may speak for in a run"""
    strikes: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong_version: set[int] = field(default_factory=set)
    owners: dict[int, int] = field(default_factory=dict)
    """client → the node that spoke for it first"""
    spoken_for: Counter[int] = field(default_factory=Counter)
    """node → how many clients it spoke for first"""

    def note(self, node: int, refusal: Refusal) -> None:
        """Log and count a refusal; enough of them, and the node is not asked again."""
        if refusal.kind == "node-paused":  # its owner's will, and nothing wrong
            log.info("node %s pauses", node)
            return
        self.refused[refusal.kind] += 1
        log.warning("refused an answer of node %s: %s", node, refusal)
        if refusal.kind == "version":
            self.wrong_version.add(node)
        if refusal.blame:
            self.strikes[node] += 1
            if self.strikes[node] == self.limit:
                log.error("node %s is set aside after %s strikes", node, self.limit)

    def bind(self, node: int, clients: Sequence[int]) -> list[int]:
        """From now on this node alone speaks for these clients; returns those that are new. Refuses another's."""
        for client in clients:
            if (owner := self.owners.get(client, node)) != node:
                raise Refusal("claimed", f"client {client} spoke through node {owner} before")
        new = [client for client in clients if client not in self.owners]
        if new and self.spoken_for[node] + len(new) > self.persons:
            raise Refusal("crowd", f"more than {self.persons} persons in this run")
        self._own(node, new)
        return new

    def _own(self, node: int, clients: Sequence[int]) -> None:
        self.owners.update(dict.fromkeys(clients, node))
        self.spoken_for[node] += len(clients)

    @property
    def set_aside(self) -> set[int]:
        """Nodes that are not asked any more."""
        return {node for node, count in self.strikes.items() if count >= self.limit} | self.wrong_version

    def to_dict(self) -> dict[str, object]:
        """The counts, for the journal."""
        strikes = {str(node): count for node, count in self.strikes.items()}
        return {"strikes": strikes, "refused": dict(self.refused), "wrong_version": sorted(self.wrong_version)}

    def restore(self, lines: Sequence[dict[str, Any]]) -> None:
        """Go on from a journal: counts stand in its last line, each client's node where it first came.

        Nodes of a wrong version are asked again: they may have been upgraded.
        """
        for line in lines:
            for node, clients in line.get("bound", {}).items():
                self._own(int(node), clients)
        saved = lines[-1].get("refusals", {}) if lines else {}
        self.strikes.update({int(node): count for node, count in saved.get("strikes", {}).items()})
        self.refused.update(saved.get("refused", {}))


@dataclass
class Answers:
    """Who was asked, and who answered."""

    asked: dict[str, int] = field(default_factory=dict)
    """message → node"""
    answered: dict[int, float] = field(default_factory=dict)
    """node → seconds until its reply"""
    lost: dict[int, str] = field(default_factory=dict)
    """node → why it sent nothing that counts"""
    closed: str = ALL

    @property
    def waiting(self) -> set[str]:
        """Messages without a reply."""
        done = self.answered.keys() | self.lost.keys()
        return {message for message, node in self.asked.items() if node not in done}

    def are_enough(self, enough: int, now: float, *, linger: bool) -> bool:
        """Whether a round or a stage can be closed, so many seconds after its questions."""
        if not self.waiting or len(self.answered) < enough:
            return not self.waiting
        seconds = self.answered.values()
        return not linger or now - max(seconds) > max(_LINGER, statistics.median(seconds))

    @property
    def silent(self) -> list[int]:
        """Nodes that never replied."""
        return sorted(self.asked[message] for message in self.waiting)


@dataclass
class Collected(Answers):
    """What a round of uploads in the clear brought."""

    uploads: list[Upload] = field(default_factory=list)
    clients: set[int] = field(default_factory=set)
    """whose uploads they are"""
    bound: dict[int, list[int]] = field(default_factory=dict)
    """node → clients that it spoke for as the first"""
    squared_error: float = 0.0
    rated: int = 0
    bytes_up: int = 0

    def take(self, node: int, packet: Packet, terms: RoundTerms, records: NodeRecords) -> None:
        """Add a reply's uploads, or raise ``Refusal``."""
        uploads, report = decode_reply(packet, terms)
        clients = [upload.client for upload in uploads]
        if not self.clients.isdisjoint(clients):
            raise Refusal("duplicate", "a client that has answered in this round")
        self.bound[node] = records.bind(node, clients)
        self.uploads += uploads
        self.clients.update(clients)
        self.bytes_up += packet.size
        if report:
            self.squared_error += report.squared
            self.rated += report.ratings


@dataclass
class Desk:
    """Where replies come in: what all rounds and all stages of a run share."""

    link: Link
    deployment: Deployment
    records: NodeRecords
    run: CoordinatedRun
    overdue: dict[str, int] = field(default_factory=dict)
    """messages of rounds and stages that have closed; their replies may still come, and are refused as late"""

    def gather(
        self, packets: Mapping[int, Packet], take: Callable[[int, Packet], None], answers: Answers, enough: int,
        progress: Mapping[str, Any], *, linger: bool = False,
    ) -> None:  # fmt: skip
        """Ask, and ``take`` replies until all have come, ``enough`` of them were sound, or the deadline is over.

        With ``linger`` it goes on after enough have come for as long as others come soon after each other: who is left
        out of a stage of a secure sum is lost to the whole of it.
        """
        answers.asked = self.link.ask(packets, self.deployment.deadline)
        started = time.monotonic()  # from here: sending V to many takes its time, and isn't theirs
        deadline = self.deployment.deadline
        while not answers.are_enough(enough, time.monotonic() - started, linger=linger) and (
            time.monotonic() - started < deadline
        ):
            began = time.monotonic()
            came = self.link.replies(answers.waiting | self.overdue.keys())
            look = time.monotonic() - began
            for message, packet in came:
                if message in answers.asked:
                    node, seconds = answers.asked[message], time.monotonic() - started
                    try:
                        if isinstance(packet, Refusal):
                            raise packet
                        take(node, packet)
                        answers.answered[node] = seconds
                    except Refusal as refusal:
                        self.records.note(node, refusal)
                        answers.lost[node] = refusal.kind
                elif message in self.overdue:
                    node = self.overdue.pop(message)
                    if isinstance(packet, Packet):
                        self.records.note(node, Refusal("late", "its round has closed", blame=False))
            counts = {"asked": len(packets), "answered": len(answers.answered), "lost": len(answers.lost)}
            self.run.set_progress(phase="round", **progress, **counts)
            took = time.monotonic() - started
            if not answers.are_enough(enough, took, linger=linger):
                pause = min(max(0.0 if came else _SHARE * took, _PER_LOOK * look, _SHORTEST_LOOK), _LONGEST_LOOK)
                time.sleep(max(0.0, min(pause, deadline - took)))
        answers.closed = ALL if not answers.waiting else ENOUGH if len(answers.answered) >= enough else DEADLINE
        self.overdue.update({message: answers.asked[message] for message in answers.waiting})

    def quorum(self, nodes: int) -> int:
        """How many of so many nodes are enough."""
        return max(1, math.ceil(self.deployment.quorum * nodes - 1e-9))


def collect(desk: Desk, packets: Mapping[int, Packet], terms: RoundTerms, target: int) -> Collected:
    """One round of uploads in the clear, of which the quorum of ``target`` answers is enough."""
    collected = Collected()

    def take(node: int, packet: Packet) -> None:
        collected.take(node, packet, terms, desk.records)

    desk.gather(packets, take, collected, desk.quorum(target), {"round": terms.round})
    collected.uploads.sort(key=lambda upload: upload.client)  # sums depend on the order in the last bit: fix it
    return collected
