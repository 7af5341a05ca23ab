"""When a round begins and ends, and what an upload may be."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import msgspec

from fedrecplus.config import Config
from fedrecplus.deploy.wire.stages import is_secure
from fedrecplus.errors import UserError


@dataclass(frozen=True)
class Deployment:
    """When a round begins and ends, and what an upload may be: no part of the algorithm, and so none of the config."""

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
    largest_change: float = 50.0
    """greatest number in a client's update that is believed; honest ones stay below 12 on MovieLens-100K"""
    learned_bound: float = 0.0
    """updates are scaled down to so many times the median of recent rounds' uploads; 0: they aren't"""
    cohort: int = 0
    """nodes whose answers close a round; 0: as many as ``cohort.fraction`` of those connected"""
    strikes: int = 3
    """refused answers after which a node is set aside"""
    identities: tuple[str, ...] = ()
    """public keys that participants of secure sums sign with; empty where nobody has pinned them"""
    rounds: int = 0
    """that the task has in all, where runs are to go on with the model; 0: those of the first run"""
    growth: float = 0.0
    """items that may be added to the task's later, as a share of them"""
    earlier_rounds: int = 0
    """of the run that this one goes on from, whose last step it tells"""
    task: str = ""
    """the document that devices agree to; made when the run begins"""
    model: str = field(default_factory=lambda: secrets.token_hex(8))
    """name that devices keep their factors under; stays the same when a run is resumed"""

    @classmethod
    def of_json(cls, text: str) -> Deployment:
        """What ``asdict`` gave, as JSON; of another version too, as long as it has the same fields or fewer."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise UserError(f"a deployment that this version doesn't read: {error}", "upgrade fedrecplus") from None


def most_persons(config: Config) -> int:
    """Persons that one node may speak for, unless the operator says.

    Nobody counts them in a secure sum, whose scales, and which rows are in it, follow from how many nodes say they are:
    one that claimed a hundred thousand brought rows of few people into a sum, or made the steps of all numbers coarse.
    """
    return 1 if is_secure(config) else Deployment.clients_per_node
