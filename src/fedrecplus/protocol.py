"""The privacy boundary: what is not a field of a type in this module never leaves a device.

``Broadcast`` goes from the server to every client; ``Upload`` comes back; ``PeerMessage`` goes from an ordinary client
to a denoising client in FedRec++; ``ErrorReport`` from a deployed node to the server, if its owner allows. ``Sums`` is
all that a server's step needs of a cohort's uploads. ``docs/fields.md`` says of each field what it reveals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array

MIDDLE = 3.0
"""of the standard scale, 1 to 5"""

BYTES_PER_NUMBER = 4
"""factors and item numbers travel as 32-bit numbers"""


@dataclass(frozen=True, eq=False)
class PublicItems:
    """What everybody may know of the items."""

    content: Array
    """items × features from the catalogue (genres, year); no columns where there is no catalogue"""
    popularity: NDArray[np.int64]
    """how often each item was rated, from public counts or one secure sum"""
    average: Array = field(default_factory=lambda: np.zeros(0))
    """its mean rating on the standard scale, as shops and film sites show it; empty where nobody publishes one"""
    years: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """the year it is from, 0 where that is not known; empty where there is no catalogue"""
    mean: float = MIDDLE
    """mean of all ratings on the standard scale: one public number"""
    noise: float = 1.0
    """variance of a uniform rating over that of five stars, at least 1: coarse scales need more regularisation"""
    source: str = "participants"
    """where counts and averages come from: see ``config.StatisticsSettings``"""
    epsilon: float | None = None
    """what they cost of the participants' privacy budget; None where they are exact figures of the participants"""
    people: int = 0
    """how many people's ratings the counts are of; 0: not known"""

    def averages(self) -> Array:
        """The mean ratings, or the mean of all ratings where none are known."""
        return self.average if len(self.average) else np.full(len(self.popularity), self.mean)

    @property
    def described(self) -> NDArray[np.bool_]:
        """Items of which something is known besides how they were rated."""
        return np.asarray((self.content != 0.0).any(axis=1))

    def of_items(self, places: NDArray[np.int64]) -> PublicItems:
        """What is known of some of the items, in this order."""
        tables = {name: getattr(self, name) for name in ("content", "popularity", "average", "years")}
        return replace(self, **{name: table[places] if len(table) else table for name, table in tables.items()})


@dataclass(frozen=True)
class Broadcast:
    """What the server tells every client of a round."""

    round: int
    """rounds that were finished before this one"""
    V: NDArray[Any]
    """item table: items × columns, as the model has them"""
    last_step: NDArray[Any]
    """V now minus V a round ago; a client that kept the table knows it without being sent"""
    last_covariance: NDArray[Any]
    """mean covariance of the clients' updates in the last round (Σ_g); empty unless the aggregation needs it"""
    features: Array
    """encoded items, unit rows: a function of V and of public things, so everybody can compute it"""
    public: PublicItems
    dense: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """the model's shared dense arrays beside each other; empty where it has none"""

    @property
    def bytes(self) -> int:
        """What a client receives that has kept last round's: the table and the dense arrays, without framing."""
        return BYTES_PER_NUMBER * (self.V.size + self.dense.size)


@dataclass(frozen=True)
class Upload:
    """What a client tells the server in a round."""

    client: int
    """a number for the connection, which the server needs to take each client once"""
    items: NDArray[np.int64]
    """rated and pseudo items together, ascending"""
    delta: Array
    """a row per item: V_i after local training minus V_i before; times ``weight`` where the client weighs itself"""
    weight: float | None = None
    """the client's own aggregation weight, where it weighs itself"""
    counts: NDArray[np.int64] | None = None
    """how many gradients each row stands for: negative where a denoising client takes noise out, 0 for a fake mark"""
    statistic: Array = field(default_factory=lambda: np.zeros(0))
    """what the model sends beside the rows: how its dense arrays moved, then small statistics; times ``weight``, too"""
    clipped: bool = False
    """whether it was clipped to a privacy budget's norm; it leaves in sums alone, as a count"""

    @property
    def bytes(self) -> int:
        """Size on the wire, without framing."""
        numbers = self.items.size + self.delta.size + self.statistic.size
        numbers += self.counts.size if self.counts is not None else 0
        numbers += 1 if self.weight is not None else 0
        return BYTES_PER_NUMBER * int(numbers)


@dataclass(frozen=True)
class Sums:
    """What a cohort's uploads add up to: all that the server's step takes, and all that secure sums would show."""

    total: NDArray[Any]
    """Σ w Δ, a row per item"""
    weights: Array
    """Σ w over the clients that uploaded each item"""
    overall: float
    """Σ w over all clients of the cohort"""
    clients: int
    covariance: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 0)))
    """Σ of the covariances of the clients' updates; empty unless the aggregation needs it"""
    statistic: Array = field(default_factory=lambda: np.zeros(0))
    """Σ w s of what the model sends beside the rows"""
    noise: float = 0.0
    """standard deviation of the noise on every entry, where there is noise for differential privacy"""
    clipped: float = 0.0
    """of how many people numbers were clipped to a bound; under a privacy budget with noise"""

    def plus(self, other: Sums) -> Sums:
        """What two cohorts add up to, before any noise."""
        added = ("total", "weights", "overall", "clients", "covariance", "statistic", "clipped")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in added})


@dataclass(frozen=True)
class Traffic:
    """What a channel's messages of a round cost, over all clients of the cohort."""

    bytes_up: int
    """sent by clients, to the server or through it to each other"""
    bytes_down: int
    """received by clients besides the broadcast"""


@dataclass(frozen=True)
class PeerMessage:
    """What an ordinary client tells its denoising client: its pseudo rows. After: Liang, Pan, Ming 2021 (FedRec++)."""

    items: NDArray[np.int64]
    delta: Array

    @property
    def bytes(self) -> int:
        """Size on the wire, without framing."""
        return BYTES_PER_NUMBER * int(self.items.size + self.delta.size)


@dataclass(frozen=True)
class ErrorReport:
    """How well the model fits a node's own ratings, all its persons together. Sent only where the node's owner says so
    (``node join --share-error``); a deployment's live view shows it as the loss."""

    squared: float
    """sum of squared errors in standard units"""
    ratings: int
    """over how many ratings"""
