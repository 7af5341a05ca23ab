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

from fedrecplus.config import Config
from fedrecplus.parts.assumptions import OfPseudoItems, OfVirtualRatings
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Upload

Array = NDArray[np.float64]
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
    sets, values = (
        getattr(chosen.part.module, "ATTACKER", None) for chosen in (config.pseudo_items, config.virtual_ratings)
    )
    if not hides_rows(config):
        return [Assumed(_SETS[1], _VALUES[1])]
    drawn = config.virtual_ratings.part.has("weights")
    every = [each for each in _VALUES if drawn or each.copied != "drawn"]
    return [Assumed(one, other) for one in ([sets] if sets else _SETS) for other in ([values] if values else every)]


def hides_rows(config: Config) -> bool:
    """Whether there are pseudo items."""
    return config.hides_rows


def shown_by(config: Config) -> frozenset[str]:
    """What a channel lets the server see: ``values`` and ``lists`` of rows of single uploads, or ``sums``."""
    if config.channel.part.VIEW == "uploads":
        return frozenset({"values", "lists"})
    return frozenset({"lists", "sums"} if config.shows_rows else {"sums"})


def visible_items(items: NDArray[np.int64], public: PublicItems, config: Config) -> NDArray[np.int64]:
    """The rows of an upload that the server sees were there: the channel's ``visible_items`` says it.

    A channel that has no such function shows all of them, or none where it shows no rows.
    """
    channel = config.channel
    if not config.shows_rows:
        return np.empty(0, np.int64)
    if channel.part.has("visible_items"):
        return np.asarray(channel.part.visible_items(items, public, channel.options), dtype=np.int64)
    return items


class Others(Protocol):
    """An attacker's knowledge of everybody but one person."""

    def rest(self, client: int, round_number: int) -> Sums:
        """What all others of the cohort add up to, as whoever knows their ratings recomputes it: without any noise."""


@dataclass(frozen=True)
class Knowledge:
    """What an attacker is assumed to know besides what the server sees. Rows of the audit name the assumption."""

    others: Others | None = None
    """everybody else's ratings"""


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
    crowd: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """which rows clients uploaded in one round, watched or not: the server sees everybody"""
    cohorts: dict[int, NDArray[np.int64]] = field(default_factory=dict)
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
        """What an attack can look at: ``values`` and ``lists`` of rows of single uploads, or ``sums``."""
        return shown_by(self.config)

    @property
    def source(self) -> Transcript:
        """The transcript of real clients behind this one: itself, unless an attacker invented its clients."""
        return self

    def origin(self, client: int) -> int:
        """The real client behind a client: itself, unless an attacker invented it after the model of another."""
        return client

    def note(self, broadcast: Broadcast, uploads: list[Upload], orders: NDArray[np.int64]) -> None:
        """Write down a round: what went out, and what came back from the watched clients."""
        V, step, covariance = (
            np.asarray(table, dtype=np.float32)
            for table in (broadcast.V, broadcast.last_step, broadcast.last_covariance)
        )
        self.broadcasts[broadcast.round] = Broadcast(
            broadcast.round, V, step, covariance, np.zeros((0, 0)), self.public
        )
        for upload in uploads:
            small = replace(upload, delta=upload.delta.astype(np.float32))
            self.sent.setdefault(upload.client, []).append(Sent(broadcast.round, int(orders[upload.client]), small))

    def broadcast(self, round_number: int) -> Broadcast:
        """What all clients were told in a recorded round, encoded items included."""
        return self.once(("broadcast", round_number), lambda: self._broadcast(round_number))

    def _broadcast(self, round_number: int) -> Broadcast:
        told, encoder = self.broadcasts[round_number], self.config.encoder
        V, step, covariance = (x.astype(np.float64) for x in (told.V, told.last_step, told.last_covariance))
        features = told.features
        if self.config.needs_features:
            features = unit_rows(encoder.part.encode(V, self.public, encoder.options))
        return replace(told, V=V, last_step=step, last_covariance=covariance, features=features)

    def columns(self, round_number: int) -> Array:
        """The public columns X of all items in a recorded round."""
        model = self.config.model
        return self.once(
            ("columns", round_number),
            lambda: model.part.item_columns(self.broadcast(round_number).V, self.public, model.options),
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
