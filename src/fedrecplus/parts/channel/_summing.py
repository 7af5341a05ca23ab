"""What channels share that add up integers: their options, a round's encoding, and everybody's vector."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fedrecplus.errors import UserError
from fedrecplus.parts.channel import secure
from fedrecplus.parts.channel._ring import BITS, Encoding, Items, Layout, OutOfBounds, RingVector, encode, zeros
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Annotated, Settings, number, text

_log = logging.getLogger("fedrecplus")


class RingSettings(Settings):
    """Options of every channel that adds up integers."""

    rows: Annotated[
        Literal["whole", "blocks", "rows"],
        text("what a client sends: the whole table, public blocks that hold one of its items, or its items' rows"),
    ] = "whole"
    block_size: Annotated[int, number(1, 10**6, "successive items of a block")] = 32
    bits: Annotated[int, number(16, 32, "of the ring that changes of rows are summed in: 16 or 32")] = 32
    bound: Annotated[float, number(1e-9, 1e9, "largest |w·Δ| that a client may send; beyond it, it drops out")] = 8.0
    largest_weight: Annotated[float, number(1e-9, 1e9, "largest aggregation weight; beyond it, a client drops out")] = (
        64.0
    )
    statistic_bound: Annotated[
        float, number(1e-9, 1e9, "largest number of the model's statistic; beyond it, a client drops out")
    ] = 64.0
    fewest_contributors: Annotated[int, number(1, 10**6, "rows with fewer, by public counts, are left out")] = 3
    least_cohort: Annotated[int, number(2, 10**6, "fewer clients than this are no sum")] = 10


def check_bits(settings: RingSettings) -> None:
    """Refuse rings that there are not."""
    if settings.bits not in BITS:
        raise UserError(f"channel.bits = {settings.bits}: there is no such ring", "set channel.bits to 16 or 32")


def encoded(
    uploads: Sequence[Upload], message: Broadcast, settings: RingSettings
) -> tuple[dict[int, RingVector], Encoding]:
    """Everybody's integers, and the round's encoding, which is made of public figures.

    Whoever exceeds a bound drops out; fewer than the least cohort are no sum. Rows of fake marks (count 0) are zero.
    """
    options: Any = settings
    layout = secure.layout_of(message.V.shape, len(uploads[0].statistic) if uploads else 0, options)
    rows = {upload.client: layout.rows_for(upload.items) for upload in uploads}
    senders = secure.senders_of(rows.values(), layout)
    encoding = secure.encoding_for(layout, message.public, len(uploads), options, senders)
    found = {}
    for upload in uploads:
        try:
            found[upload.client] = widened(encode(_rated(upload), encoding), rows[upload.client], layout)
        except OutOfBounds as problem:
            _log.warning("round %d: client %d drops out: %s", message.round, upload.client, problem)
    if len(found) < settings.least_cohort:
        raise UserError(
            f"round {message.round}: {len(found)} clients are no sum, channel.least_cohort = {settings.least_cohort}",
            "ask more clients (cohort.fraction, cohort.dropout), or look at channel.bound and channel.largest_weight",
        )
    return found, encoding


def _rated(upload: Upload) -> Upload:
    """An upload without its fake marks."""
    if upload.counts is None:
        return upload
    rated = upload.counts != 0
    return Upload(upload.client, upload.items[rated], upload.delta[rated], upload.weight, None, upload.statistic)


def widened(vector: RingVector, rows: Items | None, layout: Layout) -> RingVector:
    """The vector over more rows, which are zero."""
    if vector.rows is None or (rows is not None and len(rows) == len(vector.rows)):
        return vector
    wide = zeros(layout, rows)
    wide.add(vector)
    return wide


def visible(items: Items, item_count: int, settings: RingSettings) -> Items:
    """The rows that an upload is seen to have: none of a whole table, else all rows that it spans."""
    options: Any = settings
    rows = secure.layout_of((item_count, 0), 0, options).rows_for(items)
    return np.zeros(0, np.int64) if rows is None else rows
