"""What an honest-but-curious server has: broadcasts, uploads or sums, public settings and public item statistics.

Numbers are rounded to 32 bits, as on the wire. Nothing in it, and nothing that this module imports, knows a client's
ratings.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.item_regression import KnownSets
from fedrecplus.config import Config
from fedrecplus.parts import OfPseudoItems, OfVirtualRatings, unit_rows
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload

T = TypeVar("T")


@dataclass(frozen=True)
class Sent:
    """One upload, as it came in."""

    round: int
    order: int
    """how many uploads the client had sent before; two with successive numbers have none between them"""
    upload: Upload


@dataclass(frozen=True)
class Assumed:
    """What an attacker takes the rules to be like."""

    pseudo_items: OfPseudoItems
    virtual_ratings: OfVirtualRatings


_SETS = (
    OfPseudoItems(popularity=1.0, co_occurrence="rated"),
    OfPseudoItems(popularity=0.1, co_occurrence="neither"),
    OfPseudoItems(popularity=0.3, co_occurrence="pseudo", most_similar=True),
)
_VALUES = (
    OfVirtualRatings(residual=1.5),
    OfVirtualRatings(residual=0.0),
    OfVirtualRatings(residual=-0.5, copied="nearest"),
    OfVirtualRatings(residual=0.0, copied="drawn"),
)


def assumptions(config: Config) -> list[Assumed]:
    """What the rules declare as ``ATTACKER``; for a rule that declares nothing, every kind of rule there is.

    The audit reports the strongest of several, so that a rule is not flattered by attackers who don't know it.
    """
    sets, values = config.pseudo_items.ATTACKER, config.virtual_ratings.ATTACKER
    if not config.hides_rows:
        return [Assumed(_SETS[1], _VALUES[1])]
    drawn = config.virtual_ratings.draws_copies
    every = [each for each in _VALUES if drawn or each.copied != "drawn"]
    return [Assumed(one, other) for one in ([sets] if sets else _SETS) for other in ([values] if values else every)]


def shown_by(config: Config) -> frozenset[str]:
    """What a server sees: ``values`` and ``lists`` of rows of single uploads, or ``sums``; ``statistics`` in any case.

    Where it sees nothing because clients alone decrypt the sums, any of these may be the attacker: ``sums``.
    """
    if config.channel.VIEW == "uploads":
        return frozenset({"statistics", "values", "lists"})
    return frozenset({"statistics", "lists", "sums"} if config.shows_rows else {"statistics", "sums"})


class Others(Protocol):
    """An attacker's knowledge of everybody but one person."""

    def rest(self, client: int, round_number: int) -> Sums:
        """What all others of the cohort add up to, as whoever knows their ratings recomputes it: without any noise."""

    def statistics(self, client: int) -> tuple[Array, Array]:
        """How many others rated each item, and the sum of their ratings."""

    @property
    def sets(self) -> KnownSets:
        """Everybody's rated items: what is said of a person is said ``without`` it."""


@dataclass(frozen=True)
class SecondData:
    """Another data set of the same items, and a deployment that the attacker ran on it."""

    transcript: Transcript
    """what that deployment showed"""
    sets: KnownSets
    """its people's rated items"""


@dataclass(frozen=True)
class Knowledge:
    """What an attacker is assumed to know besides what the server sees. Rows of the audit name the assumption."""

    others: Others | None = None
    """everybody else's ratings"""
    second: SecondData | None = None
    """another data set"""
    some: Callable[[int, int], tuple[Items, Array]] | None = None
    """some of a client's own ratings, so many: items and ratings"""


@dataclass
class Transcript:
    """A recorded transcript. Attacks read it; ``once`` keeps what several of them compute alike."""

    config: Config
    public: PublicItems
    step: float
    """distance between two ratings of the scale, in standard units"""
    broadcasts: dict[int, Broadcast] = field(default_factory=dict)
    """by recorded round"""
    sums: dict[int, Sums] = field(default_factory=dict)
    """by recorded round, where the channel shows nothing else"""
    sent: dict[int, list[Sent]] = field(default_factory=dict)
    """a watched client's uploads, by round; without columns where the channel shows which rows came and no value"""
    crowd: dict[int, Items] = field(default_factory=dict)
    """which rows clients uploaded in one round, watched or not: the server sees everybody"""
    crowd_sent: dict[int, Sent] = field(default_factory=dict)
    """these uploads with their values, where they are shown"""
    models: list[dict[int, Items]] = field(default_factory=list)
    """which rows the watched clients upload to other models, of catalogues with slightly different counts"""
    cohorts: dict[int, Items] = field(default_factory=dict)
    """who took part in each recorded round, ascending"""
    watched: tuple[int, ...] = ()
    """the clients that are attacked, where there are no uploads of theirs"""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """what the attacker is assumed to have from elsewhere"""

    def __post_init__(self) -> None:
        self.assumed = assumptions(self.config)[0]
        self._kept: dict[Any, Any] = {}

    @property
    def rounds(self) -> tuple[int, ...]:
        """Recorded rounds, ascending."""
        return tuple(self.broadcasts)

    @property
    def clients(self) -> tuple[int, ...]:
        """Watched clients, ascending."""
        return tuple(sorted({*self.sent, *self.watched}))

    @property
    def shows(self) -> frozenset[str]:
        """What an attack can look at: see ``shown_by``."""
        return shown_by(self.config)

    def rounds_of(self, columns: slice) -> list[int]:
        """Recorded rounds in whose sums these columns take part."""
        return [t for t, sums in self.sums.items() if sums.total[:, columns].any()]

    @property
    def source(self) -> Transcript:
        """The transcript of real clients behind this one: itself, unless an attacker invented its clients."""
        return self

    def origin(self, client: int) -> int:
        """The real client behind a client: itself, unless an attacker invented it after the model of another."""
        return client

    def note(self, broadcast: Broadcast, uploads: list[Upload], orders: NDArray[np.int64]) -> None:
        """Write down a round: what went out, and what came back from the watched clients."""
        V, step, covariance, dense = (
            np.asarray(table, dtype=np.float32)
            for table in (broadcast.V, broadcast.last_step, broadcast.last_covariance, broadcast.dense)
        )
        self.broadcasts[broadcast.round] = Broadcast(
            broadcast.round, V, step, covariance, np.zeros((0, 0)), self.public, dense
        )
        for upload in uploads:
            self.sent.setdefault(upload.client, []).append(self.as_noted(upload, broadcast.round, orders))

    def as_noted(self, upload: Upload, round_number: int, orders: Items) -> Sent:
        """An upload in the precision of the wire."""
        small = replace(upload, delta=upload.delta.astype(np.float32))
        return Sent(round_number, int(orders[upload.client]), small)

    def broadcast(self, round_number: int) -> Broadcast:
        """What all clients were told in a recorded round, encoded items included."""
        return self.once(("broadcast", round_number), lambda: self._broadcast(round_number))

    def _broadcast(self, round_number: int) -> Broadcast:
        told, encoder = self.broadcasts[round_number], self.config.encoder
        V, step, covariance, dense = (
            x.astype(np.float64) for x in (told.V, told.last_step, told.last_covariance, told.dense)
        )
        features = told.features
        if self.config.needs_features:
            features = unit_rows(encoder.encode(V, self.public))
        return replace(told, V=V, last_step=step, last_covariance=covariance, features=features, dense=dense)

    def columns(self, round_number: int) -> Array:
        """The public columns X of all items in a recorded round."""
        model = self.config.model
        return self.once(
            ("columns", round_number),
            lambda: model.item_columns(self.broadcast(round_number).V, self.public),
        )

    def solved_columns(self, round_number: int) -> Array:
        """The columns that weights behind an upload are fitted to: all of X, unless the model says otherwise."""
        model = self.config.model
        return self.once(
            ("columns", "solved", round_number),
            lambda: model.solved_columns(self.broadcast(round_number).V, self.public),
        )

    def uploads(self, client: int) -> tuple[Sent, ...]:
        """A watched client's recorded uploads, by round, in double precision."""
        return tuple(
            replace(one, upload=replace(one.upload, delta=one.upload.delta.astype(np.float64)))
            for one in self.sent.get(client, ())
        )

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """What ``compute`` gives, computed once for this transcript."""
        if key not in self._kept:
            self._kept[key] = compute()
        return cast(T, self._kept[key])

    def with_sums(self, sums: dict[int, Sums]) -> Transcript:
        """The same notes with other sums; of what was kept, that which depends on broadcasts alone."""
        view = copy.copy(self)
        view.sums = sums
        view._kept = {key: value for key, value in self._kept.items() if key[0] in ("broadcast", "columns")}
        return view

    def hypotheses(self) -> Iterator[Transcript]:
        """The same notes under everything that may be assumed of the rules; what is kept is shared."""
        for assumed in assumptions(self.config):
            view = copy.copy(self)
            view.assumed = assumed
            yield view
