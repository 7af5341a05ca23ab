"""What a round brought, in the clear or by a secure sum, and its facts for the journal."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from fedrecplus.deploy.server.cohort import ALL, DEADLINE
from fedrecplus.protocol import Sums

_LINGER = 2.0
"""seconds without another answer, or as many as the median answer took, after which nobody is waited for"""


@dataclass
class Answers:
    """Who was asked, and who answered: a round in the clear, or one stage of a secure sum."""

    asked: dict[int, int]
    """message → node"""
    answered: dict[int, float] = field(default_factory=dict)
    """node → seconds until its reply"""
    lost: dict[int, str] = field(default_factory=dict)
    """node → why it sent nothing that counts"""
    closed: str = ALL

    @property
    def waiting(self) -> set[int]:
        """Messages without a reply."""
        done = self.answered.keys() | self.lost.keys()
        return {message for message, node in self.asked.items() if node not in done}

    def are_enough(self, enough: int, now: float, *, linger: bool) -> bool:
        """Whether a round or a stage can be closed, so many seconds after its questions."""
        if not self.waiting or len(self.answered) < enough:
            return not self.waiting
        seconds = self.answered.values()
        return not linger or now - max(seconds) > max(_LINGER, statistics.median(seconds))


@dataclass
class RoundOutcome:
    """What a round brought, whichever way."""

    target: int = 0
    """how many answers it needs; the first stage of a secure sum may close at the quorum of these, later ones at that
    of who is left"""
    sums: list[Sums] | None = None
    """one, or one of each group; None where there are none"""
    uploads: int = 0
    """how many are in the sums"""
    bytes_up: int = 0
    bytes_down: int = 0
    nodes: dict[int, float] = field(default_factory=dict)
    """node → seconds that its answers took, of those who are in the sums"""
    lost: dict[int, str] = field(default_factory=dict)
    """node → why, with the stage of a secure sum"""
    silent: list[int] = field(default_factory=list)
    clients: list[int] = field(default_factory=list)
    """whose uploads the server saw; nobody's where it saw sums"""
    bound: dict[int, list[int]] = field(default_factory=dict)
    """node → clients that it spoke for as the first"""
    rmse: float | None = None
    why: str = ""
    """there are no sums"""
    closed: str = ALL
    median_size: float | None = None
    """of the uploads that the server saw"""
    scaled: list[int] = field(default_factory=list)
    """clients whose updates were scaled down"""
    groups: list[list[int]] = field(default_factory=list)
    """nodes of each group that came to a sum, where there are any"""

    def add(self, answers: Answers, stage: str = "") -> None:
        """Note who answered a round or a stage, who was lost in it, and who never replied."""
        for node, seconds in answers.answered.items():
            self.nodes[node] = self.nodes.get(node, 0.0) + seconds
        self.lost |= {node: f"{stage} {why}".lstrip() for node, why in answers.lost.items()}
        self.silent += sorted(answers.asked[message] for message in answers.waiting)
        if answers.closed != ALL and self.closed != DEADLINE:
            self.closed = answers.closed

    def facts(self) -> dict[str, Any]:
        """For the journal: nodes by their numbers as text, which is what JSON has as names."""
        return {
            "bytes_up": self.bytes_up,
            "nodes": {str(node): round(took, 3) for node, took in self.nodes.items()},
            "lost": {str(node): why for node, why in self.lost.items()},
            "silent": [str(node) for node in self.silent],
            "uploads": self.uploads,
            "clients": self.clients,
            "bound": {str(node): clients for node, clients in self.bound.items() if clients},
            "closed": self.closed,
            "median_size": self.median_size,
            "scaled": self.scaled,
            **({"groups": self.groups} if self.groups else {}),
        }
