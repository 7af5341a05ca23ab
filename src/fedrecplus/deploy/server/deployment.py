"""How a deployment is run: what isn't part of the algorithm, and so isn't part of the config."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from fedrecplus.errors import UserError
from fedrecplus.files import write_json

DEPLOYMENT = "deployment.json"


@dataclass(frozen=True)
class Deployment:
    """When a round begins and ends, and what an upload may be."""

    model: str
    """random name that devices keep their factors under; stays the same when a run is resumed"""
    nodes: int = 1
    """a round begins when so many nodes are connected"""
    quorum: float = 1.0
    """a round closes when this share of the asked nodes has answered ..."""
    deadline: float = 120.0
    """... or after so many seconds"""
    patience: float = 600.0
    """seconds without a single upload after which the run gives up"""
    clients_per_node: int = 100_000
    """most persons that one node may speak for"""
    largest_change: float = 10.0
    """greatest number in a client's update that is believed"""
    strikes: int = 3
    """refused answers after which a node is set aside"""
    keyed: bool = True
    """nodes are known by their keys; without, a node has another number each time it connects.
    Noted anew whenever the run is submitted"""

    def write(self, folder: Path) -> None:
        """Write it into a run folder."""
        write_json(folder / DEPLOYMENT, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Deployment:
        """Read what ``write`` wrote."""
        try:
            return cls(**json.loads((folder / DEPLOYMENT).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            remedy = "start one with `fedrecplus deploy run`"
            raise UserError(f"{folder} holds no deployment: {error}", remedy) from None


def new_model() -> str:
    """A name for a model that nobody had before."""
    return secrets.token_hex(8)
