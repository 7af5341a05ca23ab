"""Fixed-point numbers in a ring: how an upload becomes integers that add up modulo 2^bits, and how sums come back.

Every channel that adds up masked, shared or noised integers uses this one encoding. A client's vector has two sections:

- *updates*: a row per item, w·Δ, modulo 2^bits (16 or 32). A row's scale depends on how many clients can contribute:
  of a popular row the sum needs range, of a rare one each number can have precision.
- *weights*, always modulo 2^32: w of each row, where it is sent, then the statistic, whether a number was clipped, the
  client's weight over all, and the number of persons. Exact Σw of every row in every round would publish who rated
  what to whoever compares two cohorts; by default the server divides by public counts instead.

A sum is exact up to the rounding of each contribution: to the nearest step of 32 bits; of 16 bits, where most numbers
are smaller than a step, up or down by chance, so that no sum is shifted. Where no more clients contribute to a row than
was allowed for, a sum of 32 bits can't wrap around. One of 16 bits has room for numbers of both signs
(``of_both_signs``): it would wrap around only where nearly all were at the bound with one sign. Numbers beyond the
bound are clipped to it, and what is no number counts as zero: a client that dropped out for what it has would tell the
server so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.errors import UserError
from fedrecplus.protocol import Sums, Upload
from fedrecplus.randomness import to_unit, uniform

BITS = (16, 32)
WEIGHT_BITS = 32


@dataclass(frozen=True)
class RingLayout:
    """The shape of a vector: all that masks and shares need to know of it."""

    items: int
    """rows of the table"""
    columns: int
    bits: int
    """of a number of the updates"""
    statistic_size: int = 0
    block: int = 0
    """successive items that are sent together or not at all; 0: every client sends the whole table"""
    weights: bool = True
    """whether a vector has a weight for each row; without, it spans the whole table"""

    @property
    def dtype(self) -> Any:
        """Of the updates."""
        return np.dtype(f"<u{self.bits // 8}")

    @property
    def whole(self) -> bool:
        """Whether every vector spans the whole table."""
        return self.block == 0

    def weight_count(self, rows: int) -> int:
        """Numbers in the section of weights: one per row, if they are sent, and those of the whole client."""
        return rows * self.weights + self.statistic_size + 3

    def bytes_of(self, rows: int) -> int:
        """Size of a vector that spans so many rows."""
        return rows * self.columns * self.bits // 8 + self.weight_count(rows) * WEIGHT_BITS // 8

    def rows_for(self, items: Items) -> Items | None:
        """The rows that a vector with these items spans: all (None), or all blocks that hold one of them."""
        if self.whole:
            return None
        rows = (np.unique(items // self.block)[:, None] * self.block + np.arange(self.block)).ravel()
        return np.asarray(rows[rows < self.items])

    @property
    def blocks(self) -> int:
        """How many blocks there are; 0 where every vector spans the whole table."""
        return 0 if self.whole else (self.items + self.block - 1) // self.block

    @property
    def rows_bytes(self) -> int:
        """Size of ``to_bits``."""
        return (self.blocks + 7) // 8

    def to_bits(self, rows: Items | None) -> bytes:
        """Rows as one bit per block; nothing for the whole table."""
        if self.whole or rows is None:
            return b""
        held = np.zeros(self.blocks, dtype=bool)
        held[rows // self.block] = True
        return np.packbits(held).tobytes()

    def from_bits(self, bits: bytes) -> Items | None:
        """The rows behind these bits; a ``ValueError`` where they can't be that."""
        if len(bits) != self.rows_bytes:
            raise ValueError(f"{self.blocks} blocks take {self.rows_bytes} bytes, not {len(bits)}")
        if self.whole:
            return None
        held = np.unpackbits(np.frombuffer(bits, np.uint8))
        if held[self.blocks :].any():
            raise ValueError("a block beyond the table")
        return self.rows_for(np.flatnonzero(held) * self.block)


@dataclass(frozen=True, eq=False)
class Encoding:
    """What everybody knows of a round's fixed-point numbers: computed from public figures, the same everywhere."""

    layout: RingLayout
    scales: Array
    """steps per unit of w·Δ, for each item; 0 where the item is left out of the sums"""
    weight_scale: float
    """steps per unit of weight"""
    statistic_scale: float
    bound: float
    """of |w·Δ|, number by number"""
    largest_weight: float
    statistic_bound: float
    expected: Array
    """of each row, the share of people whose public counts it is in: what the server divides by without sent weights"""
    clipped_unit: float = 1.0
    """what a person whose numbers are clipped adds beside the statistic"""

    @property
    def by_chance(self) -> bool:
        """Whether updates are rounded up or down by chance: steps are coarse, and the nearest one would often be 0."""
        return self.layout.bits < WEIGHT_BITS

    def rounding_error(self, contributors: NDArray[Any]) -> Array:
        """The most that rounding can move each row's sums by: half a step per contributor, or a whole one by chance."""
        none, most = np.zeros(len(self.scales)), (1.0 if self.by_chance else 0.5) * contributors
        return np.asarray(np.divide(most, self.scales, out=none, where=self.scales > 0))


@dataclass(eq=False)
class RingVector:
    """Integers modulo 2^bits: one client's, masked or not, or a sum."""

    rows: Items | None
    """the items whose rows it spans, ascending; None: all of them"""
    updates: NDArray[Any]
    """rows × columns, unsigned"""
    weights: NDArray[Any]
    """one per row, where they are sent, the statistic, clipped or not, the weight over all, the number of persons"""

    def add(self, other: RingVector) -> None:
        """Add a vector that spans no rows beyond these."""
        if other.rows is None or (self.rows is not None and np.array_equal(self.rows, other.rows)):
            self.updates += other.updates
            self.weights += other.weights
            return
        places = other.rows if self.rows is None else np.searchsorted(self.rows, other.rows)
        self.updates[places] += other.updates
        self.weights[places] += other.weights[: len(places)]
        self.weights[len(self.updates) :] += other.weights[len(places) :]

    def to_bytes(self) -> bytes:
        """Both sections, little-endian; the rows are told apart."""
        return self.updates.tobytes() + self.weights.tobytes()


def zeros(layout: RingLayout, rows: Items | None = None) -> RingVector:
    """A vector of zeros over some rows, or over all."""
    count = layout.items if rows is None else len(rows)
    weights = np.zeros(layout.weight_count(count), dtype="<u4")
    return RingVector(rows, np.zeros((count, layout.columns), dtype=layout.dtype), weights)


def from_bytes(data: bytes, layout: RingLayout, rows: Items | None = None) -> RingVector:
    """The vector that was sent, not to be written to; wrong lengths are a ``ValueError``."""
    count = layout.items if rows is None else len(rows)
    if len(data) != layout.bytes_of(count):
        raise ValueError(f"a vector of {count} rows has {layout.bytes_of(count)} bytes, not {len(data)}")
    numbers = count * layout.columns
    updates = np.frombuffer(data, layout.dtype, numbers).reshape(count, layout.columns)
    return RingVector(rows, updates, np.frombuffer(data, "<u4", offset=numbers * layout.bits // 8))


def contributors(popularity: NDArray[Any], cohort: int, slack: float = 1.25) -> Items:
    """The most clients that a row's sum is made for: its public count with some slack, and no more than the cohort.

    Counts may have been noised, or be those of another data set: a quarter more, and sixteen, are allowed for.
    """
    expected = np.ceil(slack * np.maximum(popularity, 0)).astype(np.int64) + 16
    return np.asarray(np.minimum(expected, max(cohort, 1)))


def of_both_signs(most: Items) -> Items:
    """How many contributions at the bound a sum of so many reaches, where they are of both signs.

    2√n, and n/16 at least: of n numbers at random signs a sum grows with √n, and what people have in common adds to it.
    Ours: sums of trainings reached half of it (docs/secure-sums.md).

    >>> of_both_signs(np.array([1, 100, 10_000]))
    array([  1,  20, 625])
    """
    return np.minimum(most, np.ceil(np.maximum(2.0 * np.sqrt(most), most / 16)).astype(np.int64))


def encoding_of(
    layout: RingLayout,
    most: Items,
    cohort: int,
    bound: float,
    largest_weight: float,
    statistic_bound: float = 1.0,
    left_out: NDArray[np.bool_] | None = None,
    expected: Array | None = None,
    clipped_unit: float | None = None,
) -> Encoding:
    """Scales such that ``most`` contributions to a row, each at the bound, don't wrap around.

    A contribution has ``levels`` steps at most, so that rounding can't take a sum over the edge either.
    """
    levels = (2 ** (layout.bits - 1) - 1) // np.maximum(most, 1)
    if levels.min(initial=1) < 1:
        problem = f"a cohort of {cohort} clients has no room in {layout.bits} bits"
        raise UserError(problem, "set channel.bits=32, or a smaller cohort.fraction")
    scales = levels / bound
    if left_out is not None:
        scales = np.where(left_out, 0.0, scales)
    of_all = (2 ** (WEIGHT_BITS - 1) - 1) // max(cohort, 1)
    expected = most / max(cohort, 1) if expected is None else expected
    weight_scale = of_all / largest_weight
    if weight_scale >= 1.0:
        weight_scale = float(int(weight_scale))  # a weight of 1 is then exact
    return Encoding(
        layout, scales, weight_scale, of_all / statistic_bound, bound, largest_weight, statistic_bound,
        np.where(scales > 0, expected, 0.0), statistic_bound if clipped_unit is None else clipped_unit,
    )  # fmt: skip


def encode(upload: Upload, encoding: Encoding, key: int | None = None) -> RingVector:
    """One person's upload as ring numbers over the rows that hold its items; all its other rows are zero.

    Numbers beyond the bounds are clipped. An upload without a weight counts once. ``key`` draws where numbers are
    rounded by chance; None: the operating system does.
    """
    delta, weight, statistic = _clipped(upload, encoding)
    layout = encoding.layout
    rows = layout.rows_for(upload.items)
    vector = zeros(layout, rows)
    places = upload.items if rows is None else np.searchsorted(rows, upload.items)
    scales, steps = encoding.scales[upload.items], weight * encoding.weight_scale
    updates = delta * scales[:, None]
    if encoding.by_chance:
        updates = np.floor(updates + _draws(upload.items, layout.columns, key))
    vector.updates[places] = _to_ring(updates, layout.dtype)
    if layout.weights:
        vector.weights[places] = _to_ring(np.where(scales > 0, steps, 0.0), "<u4")
    beside = np.append(statistic, encoding.clipped_unit * is_clipped(upload, encoding))
    of_client = np.concatenate([beside * encoding.statistic_scale, [steps, 1.0]])
    vector.weights[-len(of_client) :] = _to_ring(of_client, "<u4")
    return vector


def decode(total: RingVector, encoding: Encoding) -> Sums:
    """The sums behind a ring sum over all rows: integers, divided by their scales.

    Without sent weights, Σw of a row is what public counts let expect of so much weight over all.
    """
    layout, scales = encoding.layout, encoding.scales
    count = layout.items
    signed = total.updates.view(np.dtype(f"<i{layout.bits // 8}")).astype(np.float64)
    steps = np.divide(1.0, scales, out=np.zeros(count), where=scales > 0)
    weights = total.weights.view("<i4").astype(np.float64)
    overall = float(weights[-2] / encoding.weight_scale)
    *statistic, clipped = weights[-3 - layout.statistic_size : -2] / encoding.statistic_scale
    return Sums(
        signed * steps[:, None],
        weights[:count] / encoding.weight_scale if layout.weights else overall * encoding.expected,
        overall,
        int(total.weights[-1]),
        statistic=np.array(statistic),
        clipped=clipped / encoding.clipped_unit if encoding.clipped_unit > 0 else 0.0,
    )


def of_steps(sums: Sums, encoding: Encoding) -> RingVector:
    """Sums that were added up in whole steps, as a ring sum over all rows; people are counted as they are."""
    layout, clipped = encoding.layout, encoding.clipped_unit * encoding.statistic_scale * sums.clipped
    per_row = sums.weights if layout.weights else sums.weights[:0]
    weights = np.concatenate([per_row, sums.statistic, [clipped, sums.overall, sums.clients]])
    return RingVector(None, _to_ring(sums.total, layout.dtype), _to_ring(weights, "<u4"))


def add_all(vectors: Iterable[RingVector], layout: RingLayout) -> RingVector:
    """The ring sum over the whole table."""
    total = zeros(layout)
    for vector in vectors:
        total.add(vector)
    return total


def _draws(items: Items, columns: int, key: int | None) -> Array:
    """A number from [0, 1) for each number of these rows: floor(x + draw) is x on average, and 0 stays 0."""
    if key is None:
        words = np.frombuffer(os.urandom(8 * items.size * columns), dtype=np.uint64)
        return np.asarray(to_unit(words)).reshape(-1, columns)
    return uniform(key, items[:, None] * columns + np.arange(columns))


def _to_ring(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Rounded to the nearest integer, modulo the ring's size."""
    ring: NDArray[Any] = np.rint(values).astype(np.int64).astype(dtype)
    return ring


def is_clipped(upload: Upload, encoding: Encoding) -> bool:
    """Whether a number of this upload is clipped, here or before: a bound that does it often is too small."""
    delta, weight, statistic = _clipped(upload, encoding)
    own = 1.0 if upload.weight is None else upload.weight
    same = np.array_equal(delta, upload.delta) and weight == own and np.array_equal(statistic, upload.statistic)
    return upload.clipped or not same


def _clipped(upload: Upload, encoding: Encoding) -> tuple[Array, float, Array]:
    """Changes, weight and statistic within the bounds."""
    weight = 1.0 if upload.weight is None else upload.weight
    return (
        within(upload.delta, encoding.bound),
        max(float(within(np.array(weight), encoding.largest_weight)), 0.0),
        within(upload.statistic, encoding.statistic_bound),
    )


def within(values: Array, bound: float) -> Array:
    """Numbers clipped to a bound; what is no number is zero.

    >>> within(np.array([0.5, -7.0, np.inf, np.nan]), 2.0).tolist()
    [0.5, -2.0, 2.0, 0.0]
    """
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=bound, neginf=-bound), -bound, bound)
