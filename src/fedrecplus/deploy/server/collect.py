"""One round's replies: ask, collect until all, a quorum or the deadline, refuse what is unsound or somebody else's."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedrecplus.deploy.server.cohort import ALL, DEADLINE, ENOUGH
from fedrecplus.deploy.server.outcome import Answers, RoundOutcome
from fedrecplus.deploy.server.stored_run import CoordinatedRun
from fedrecplus.deploy.server.terms import Deployment
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.reply import RoundTerms, decode_reply
from fedrecplus.protocol import ErrorReport, Upload

log = logging.getLogger("fedrecplus")
_SHORTEST_LOOK, _LONGEST_LOOK, _SHARE, _PER_LOOK = 0.05, 5.0, 0.1, 3.0
"""seconds between looks for replies: a tenth of what the round has taken, so that long rounds cost few looks, and some
times what the last look took, so that a busy server has time for its nodes"""


class Link(Protocol):
    """What a round needs of the network. ``server.link.DatabaseLink`` is the real one, tests have their own."""

    def nodes(self) -> list[int]:
        """Nodes that are connected."""

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
        """Send a packet to each node; returns message → node. Who comes back within that time gets it still.

        What was asked before is over with it, answered or not.
        """

    def replies(self, messages: Iterable[int]) -> list[tuple[int, Packet | Refusal]]:
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


@dataclass(frozen=True)
class Collector:
    """Asks nodes and takes their replies: what all rounds and all stages of a run share."""

    link: Link
    deployment: Deployment
    records: NodeRecords
    run: CoordinatedRun

    def gather(
        self, packets: Mapping[int, Packet], take: Callable[[int, Packet], None], enough: int,
        progress: Mapping[str, Any], *, linger: bool = False,
    ) -> Answers:  # fmt: skip
        """Ask, and ``take`` replies until all have come, ``enough`` of them were sound, or the deadline is over.

        With ``linger`` it goes on after enough have come for as long as others come soon after each other: who is left
        out of a stage of a secure sum is lost to the whole of it.
        """
        deadline = self.deployment.deadline
        answers = Answers(self.link.ask(packets, deadline))
        started = time.monotonic()  # from here: sending V to many takes its time, and isn't theirs
        while True:
            began = time.monotonic()
            came = self.link.replies(answers.waiting)
            look = time.monotonic() - began
            for message, packet in came:
                self._take_reply(answers, answers.asked[message], packet, take, time.monotonic() - started)
            counts = {"asked": len(packets), "answered": len(answers.answered), "lost": len(answers.lost)}
            self.run.set_progress(phase="round", **progress, **counts)
            took = time.monotonic() - started
            if answers.are_enough(enough, took, linger=linger) or took >= deadline:
                break
            pause = min(max(0.0 if came else _SHARE * took, _PER_LOOK * look, _SHORTEST_LOOK), _LONGEST_LOOK)
            time.sleep(min(pause, deadline - took))
        answers.closed = ALL if not answers.waiting else ENOUGH if len(answers.answered) >= enough else DEADLINE
        return answers

    def _take_reply(
        self, answers: Answers, node: int, packet: Packet | Refusal, take: Callable[[int, Packet], None], seconds: float
    ) -> None:
        try:
            if isinstance(packet, Refusal):
                raise packet
            take(node, packet)
            answers.answered[node] = seconds
        except Refusal as refusal:
            self.records.note(node, refusal)
            answers.lost[node] = refusal.kind

    def quorum(self, nodes: int) -> int:
        """How many of so many nodes are enough."""
        return max(1, math.ceil(self.deployment.quorum * nodes - 1e-9))


def collect(
    collector: Collector, packets: Mapping[int, Packet], terms: RoundTerms, target: int
) -> tuple[list[Upload], RoundOutcome]:
    """One round of uploads in the clear, of which the quorum of ``target`` answers is enough."""
    uploads, reports, outcome = list[Upload](), list[ErrorReport](), RoundOutcome(target)

    def take(node: int, packet: Packet) -> None:
        sent, report = decode_reply(packet, terms)
        outcome.bound[node] = collector.records.bind(node, [upload.client for upload in sent])
        outcome.bytes_up += packet.size
        uploads.extend(sent)
        reports.extend([report] if report else [])

    outcome.add(collector.gather(packets, take, collector.quorum(target), {"round": terms.round}))
    uploads.sort(key=lambda upload: upload.client)  # sums depend on the order in the last bit: fix it
    outcome.uploads, outcome.clients = len(uploads), [upload.client for upload in uploads]
    if rated := sum(report.ratings for report in reports):
        outcome.rmse = math.sqrt(sum(report.squared for report in reports) / rated)
    return uploads, outcome
