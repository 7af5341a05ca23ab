"""What a round brought, in the clear or by a secure sum, and its facts for the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrecplus.deploy.server.cohort import ALL
from fedrecplus.deploy.server.collect import Collected
from fedrecplus.deploy.server.secure_sums import Summed
from fedrecplus.protocol import Sums


@dataclass
class RoundOutcome:
    """What a round brought, whichever way."""

    sums: list[Sums] | None
    """one, or one of each group"""
    uploads: int
    """how many are in the sums"""
    bytes_up: int
    nodes: dict[int, float]
    """node → seconds until its reply"""
    lost: dict[int, str]
    silent: list[int]
    clients: list[int] = field(default_factory=list)
    """whose uploads the server saw; nobody's where it saw sums"""
    bound: dict[int, list[int]] = field(default_factory=dict)
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

    @classmethod
    def of_uploads(cls, collected: Collected) -> RoundOutcome:
        """Uploads in the clear; their sums are still to be made."""
        rmse = float(np.sqrt(collected.squared_error / collected.rated)) if collected.rated else None
        clients = [upload.client for upload in collected.uploads]
        who = (collected.answered, collected.lost, collected.silent)
        outcome = cls(None, len(clients), collected.bytes_up, *who, clients, collected.bound, rmse)
        outcome.closed = collected.closed
        return outcome

    @classmethod
    def of_sum(cls, summed: Summed) -> RoundOutcome:
        """A secure sum."""
        count = sum(sums.clients for sums in summed.sums or ())
        who = (summed.nodes, summed.lost, summed.silent)
        groups = summed.groups if len(summed.groups) > 1 else []
        return cls(summed.sums, count, summed.bytes_up, *who, why=summed.why, closed=summed.closed, groups=groups)

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
