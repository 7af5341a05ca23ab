"""One round's replies: ask, collect until all, a quorum or the deadline, refuse what is late, twice or unsound."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedrecplus.deploy.server.deployment import Deployment, Journal
from fedrecplus.deploy.wire import Packet, Refusal, RoundTerms, decode_reply
from fedrecplus.protocol import Upload

log = logging.getLogger("fedrecplus")
_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 0.5
"""seconds between looks for replies: the longer nothing comes, the fewer"""


class Link(Protocol):
    """What a round needs of the network. ``flower.messages.FlowerLink`` is Flower's, tests have their own."""

    def nodes(self) -> list[int]:
        """Nodes that are connected."""

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        """Send a packet to each node; returns message id → node."""

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Replies that came to these messages; a ``Refusal`` where there won't be one or it can't be read."""


@dataclass
class NodeRecords:
    """Who was refused how often, who is set aside, who speaks for whom; survives a restart in the journal."""

    limit: int
    """strikes after which a node is set aside"""
    strikes: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong_version: set[int] = field(default_factory=set)
    without_catalogue: set[int] = field(default_factory=set)
    owners: dict[int, int] = field(default_factory=dict)
    """client → the node that spoke for it first"""

    def note(self, node: int, refusal: Refusal) -> None:
        """Log and count a refusal; enough of them, and the node is not asked again."""
        self.refused[refusal.kind] += 1
        log.warning("refused an answer of node %s: %s", node, refusal)
        if refusal.kind == "version":
            self.wrong_version.add(node)
        if refusal.kind == "node-catalogue":
            self.without_catalogue.add(node)
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
        self.owners.update(dict.fromkeys(new, node))
        return new

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
                self.owners.update(dict.fromkeys(clients, int(node)))
        saved = lines[-1].get("refusals", {}) if lines else {}
        self.strikes.update({int(node): count for node, count in saved.get("strikes", {}).items()})
        self.refused.update(saved.get("refused", {}))


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

    def take(self, node: int, packet: Packet | Refusal, terms: RoundTerms, records: NodeRecords | None) -> None:
        """Add a reply's uploads, or raise ``Refusal``. ``records`` where nodes are known by their keys."""
        if isinstance(packet, Refusal):
            raise packet
        uploads, report = decode_reply(packet, terms)
        clients = [upload.client for upload in uploads]
        if not {upload.client for upload in self.uploads}.isdisjoint(clients):
            raise Refusal("duplicate", "a client that has answered in this round")
        if records is not None:
            self.bound[node] = records.bind(node, clients)
        self.uploads += uploads
        self.bytes_up += packet.size
        if report:
            self.squared_error += report.squared
            self.rated += report.ratings


def collect(
    link: Link, packets: Mapping[int, Packet], terms: RoundTerms, deployment: Deployment, records: NodeRecords,
    overdue: dict[str, int], journal: Journal,
) -> Collected:  # fmt: skip
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
                    collected.take(node, packet, terms, records if deployment.keyed else None)
                    collected.answered[node] = seconds
                except Refusal as refusal:
                    records.note(node, refusal)
                    collected.lost[node] = refusal.kind
            elif message in overdue:
                node = overdue.pop(message)
                if isinstance(packet, Packet):
                    records.note(node, Refusal("late", "its round has closed", blame=False))
        counts = {"asked": len(packets), "answered": len(collected.answered), "lost": len(collected.lost)}
        journal.set_progress(phase="round", round=terms.round, **counts)
        look = _SHORTEST_LOOK if came else min(1.3 * look, _LONGEST_LOOK)
        if collected.waiting:
            time.sleep(look)
    overdue.update({message: collected.asked[message] for message in collected.waiting})
    collected.uploads.sort(key=lambda upload: upload.client)  # sums depend on the order in the last bit: fix it
    return collected
