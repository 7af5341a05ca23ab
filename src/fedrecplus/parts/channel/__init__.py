"""What the server gets to see of a cohort's uploads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.device import Device
from fedrecplus.errors import UserError
from fedrecplus.parts.channel._groups import Grouping as Grouping, cohort_bytes as cohort_bytes, joined as joined
from fedrecplus.parts.channel._ring import (
    BITS,
    WEIGHT_BITS,
    Encoding as Encoding,
    RingLayout as RingLayout,
    RingVector as RingVector,
    add_all as add_all,
    contributors as contributors,
    decode as decode,
    encode as encode,
    encoding_of as encoding_of,
    from_bytes as from_bytes,
    is_clipped as is_clipped,
    of_both_signs,
    of_steps as of_steps,
    zeros as zeros,
)
from fedrecplus.parts.channel._summing import (
    RingSettings as RingSettings,
    encoding_for as encoding_for,
    expected_in as expected_in,
    layout_of as layout_of,
    least_persons as least_persons,
    mark as mark,
    never_summed as never_summed,
    rounding_keys as rounding_keys,
    rounding_norm as rounding_norm,
    senders_of as senders_of,
    spanned,
    too_few as too_few,
    warn_of_clipping as warn_of_clipping,
    without_marks as without_marks,
)
from fedrecplus.parts.part import Part, S
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.randomness import Key

VIEWS = ("uploads", "sums", "nothing")
"""what a channel may show the server"""
R = TypeVar("R", bound=RingSettings)


class Channel(Part[S]):
    """The way from devices to the server."""

    kind: ClassVar[str] = "channel"
    label: ClassVar[str] = "channel"
    VIEW: ClassVar[Literal["uploads", "sums", "nothing"]] = "uploads"
    """what the server sees: the audit records exactly that"""
    SIMULATION_ONLY: ClassVar[bool] = False
    """not for real devices"""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.VIEW not in VIEWS:
            raise UserError(
                f"{cls.__module__}: VIEW = {cls.VIEW!r} says not what the server sees", f"write {' or '.join(VIEWS)}"
            )

    def protect(self, upload: Upload, secret: Key, broadcast: Broadcast) -> Upload:
        """On the device: the upload as it is sent."""
        return upload

    def exchange(
        self, devices: Mapping[int, Device], uploads: Mapping[int, Upload], round_number: int, seed: int
    ) -> tuple[dict[int, Upload], int]:
        """What clients send after they have talked to each other, and the bytes that went between them."""
        return dict(uploads), 0

    @property
    def protects(self) -> bool:
        """Whether ``protect`` does anything."""
        return type(self).protect is not Channel.protect

    @property
    def exchanges(self) -> bool:
        """Whether ``exchange`` does anything."""
        return type(self).exchange is not Channel.exchange

    @property
    def rows(self) -> str:
        """Rows that an upload spans: the ``whole`` table, ``blocks`` of it, or the client's ``rows``."""
        return "rows"

    @property
    def shows_rows(self) -> bool:
        """Whether the server sees something of which items a client uploads rows of."""
        return self.rows != "whole"

    def visible_rows(self, items: Items, item_count: int) -> Items:
        """Which rows the server sees an upload of these items to have."""
        return items if self.shows_rows else items[:0]

    @property
    def arriving(self) -> float:
        """The share of a simulated cohort that is in its sums."""
        return 1.0

    @property
    def least_cohort(self) -> int:
        """Fewer clients than this are no sum."""
        return 0

    @property
    def bits(self) -> int:
        """Of the numbers that it adds up."""
        return 32

    @property
    def demonstration(self) -> bool:
        """Whether its sums may be of so few people that they can be taken apart."""
        return False

    @property
    def computed(self) -> str | None:
        """Whether a simulation computes its cryptography; None where there is none."""
        return None


class SummingChannel(Channel[S]):
    """A channel that adds a cohort up by itself, of clients that weigh themselves or all weigh the same."""

    VIEW: ClassVar[Literal["uploads", "sums", "nothing"]] = "sums"

    @abstractmethod
    def add_up(self, uploads: Sequence[Upload], message: Broadcast, seed: int) -> tuple[Sums, Traffic]:
        """The cohort's sums in a simulation, and what messages cost."""

    def rounding_error(self, uploads: Sequence[Upload], message: Broadcast) -> Array:
        """The most that rounding can move each row's sums by."""
        return np.zeros(len(message.V))

    def rounding_norm(self, numbers: int, statistic: int, clients: int) -> float:
        """The most that rounding can add to the L2 norm of one client's vector."""
        return 0.0


class RingChannel(SummingChannel[R]):
    """A channel that adds integers up in a ring."""

    def check_with(self, config: Any) -> None:
        """Refuse rings that there are not, and vectors that don't fit a model which uploads rows of all items."""
        if self.settings.bits not in BITS:
            problem = f"channel.bits = {self.settings.bits}: there is no such ring"
            raise UserError(problem, "set channel.bits to 16 or 32")
        if config.model.ALL_ITEMS and self.settings.rows != "whole":
            raise UserError(
                f"channel.rows={self.settings.rows} with model.rule={config.model.rule}, which uploads rows of all "
                "items: there are no rows to leave out",
                "set channel.rows=whole and channel.weights=sent",
            )
        if config.model.ALL_ITEMS and self.settings.weights == "public":
            raise UserError(
                f"model.rule={config.model.rule} uploads rows of all items, which public counts say nothing about",
                "set channel.weights=sent",
            )

    def exchange(
        self, devices: Mapping[int, Device], uploads: Mapping[int, Upload], round_number: int, seed: int
    ) -> tuple[dict[int, Upload], int]:
        """Where rows are seen, pseudo items become marks without a value: nobody sees values. Nothing is said."""
        return (mark(devices, uploads) if self.shows_rows else dict(uploads)), 0

    @property
    def rows(self) -> str:
        """As the settings say."""
        return self.settings.rows

    def visible_rows(self, items: Items, item_count: int) -> Items:
        """All rows that a client's vector is seen to span; none of a whole table."""
        rows = layout_of((item_count, 0), 0, self.settings).rows_for(items)
        return items[:0] if rows is None else rows

    @property
    def least_cohort(self) -> int:
        """As the settings say."""
        return self.settings.least_cohort

    @property
    def bits(self) -> int:
        """Of the ring."""
        return self.settings.bits

    @property
    def computed(self) -> str | None:
        """As the settings say."""
        return self.settings.cryptography

    def rounding_error(self, uploads: Sequence[Upload], message: Broadcast) -> Array:
        """Half a step, or one, per client that contributes to a row."""
        encoding = spanned(uploads, message, self.settings)[1]
        items = np.concatenate([np.zeros(0, np.int64), *(upload.items for upload in uploads)])
        return encoding.rounding_error(np.bincount(items, minlength=len(message.V)))

    def rounding_deviation(self, clients: int) -> float:
        """Standard deviation of one number's rounding, in a row that so many clients may contribute to.

        Of a step Δ it is Δ/√12 to the nearest, and Δ/√6 on average by chance.
        """
        by_chance = self.bits < WEIGHT_BITS
        room = np.full(1, max(clients, 1))
        levels = (2 ** (self.bits - 1) - 1) // int((of_both_signs(room) if by_chance else room)[0])
        return float(self.settings.bound / max(levels, 1) / np.sqrt(6.0 if by_chance else 12.0))

    def rounding_norm(self, numbers: int, statistic: int, clients: int) -> float:
        """Of numbers that are rounded to the nearest step."""
        return rounding_norm(numbers, statistic, clients, self.settings)
