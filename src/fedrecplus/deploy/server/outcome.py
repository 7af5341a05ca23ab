"""What a round brought, in the clear or by a secure sum, and its facts for the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrecplus.deploy.server.cohort import ALL
from fedrecplus.deploy.server.collect import Collected
from fedrecplus.protocol import Sums


@dataclass
class RoundOutcome:
    """What a round brought, whichever way."""

    target: int = 0
    """how many answers a secure sum needs; its first stage may close at the quorum of these, later ones at that of who
    is left"""
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
        return cls(
            uploads=len(clients), bytes_up=collected.bytes_up, nodes=collected.answered, lost=collected.lost,
            silent=collected.silent, clients=clients, bound=collected.bound, rmse=rmse, closed=collected.closed,
        )  # fmt: skip

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
