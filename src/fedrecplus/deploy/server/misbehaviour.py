"""What the server remembers of nodes: who was refused how often, who is set aside, and who speaks for whom."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fedrecplus.deploy.wire import Refusal

log = logging.getLogger("fedrecplus")


@dataclass
class NodeRecords:
    """Counts over a whole run; they survive a restart in the journal."""

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
            owner = self.owners.get(client, node)
            if owner != node:
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
