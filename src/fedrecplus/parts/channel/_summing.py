"""What channels share that add up integers: their options, a round's encoding, and everybody's vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from fedrecplus.errors import UserError
from fedrecplus.parts.channel._ring import Encoding, Layout, OutOfBounds, RingVector, contributors, encode, encoding_of
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Settings, number, text


class RingSettings(Settings):
    """Options of every channel that adds up integers."""

    rows: Annotated[
        Literal["whole", "blocks", "rows"],
        text("rows that an upload spans: all, whole blocks of successive items, or rated and pseudo items"),
    ] = "whole"
    block: Annotated[int, number(2, 10**6, "items of a block, where rows = blocks")] = 64
    bits: Annotated[Literal["16", "32"], text("of a number of a row")] = "32"
    bound: Annotated[float, number(1e-6, 1e9, "of every number of w·Δ; whoever exceeds it drops out")] = 64.0
    largest_weight: Annotated[float, number(1e-6, 1e12, "of a client")] = 1000.0
    fewest: Annotated[int, number(2, 10**6, "clients of a sum; fewer are refused")] = 3


def encoding_for(message: Broadcast, cohort: int, statistic_size: int, settings: RingSettings) -> Encoding:
    """The round's fixed-point numbers, from public figures."""
    items, columns = message.V.shape
    block = {"whole": 0, "blocks": settings.block, "rows": 1}[settings.rows]
    layout = Layout(items, columns, int(settings.bits), statistic_size, block)
    most = contributors(message.public.popularity, cohort)
    return encoding_of(layout, most, cohort, settings.bound, settings.largest_weight)


def vectors_of(uploads: Sequence[Upload], encoding: Encoding, settings: RingSettings) -> dict[int, RingVector]:
    """Everybody's integers; whoever exceeds a bound drops out, and too few are refused."""
    found = {}
    for upload in uploads:
        try:
            found[upload.client] = encode(upload, encoding)
        except OutOfBounds:
            continue
    if len(found) < settings.fewest:
        raise UserError(
            f"{len(found)} clients are no sum: channel.fewest = {settings.fewest}",
            "ask more clients: cohort.fraction, cohort.dropout, or more ratings",
        )
    return found


def visible(items: np.ndarray, item_count: int, settings: RingSettings) -> np.ndarray:
    """The rows that an upload is seen to have."""
    if settings.rows == "whole":
        return items[:0]
    rows = Layout(item_count, 0, 32, 0, settings.block if settings.rows == "blocks" else 1).rows_for(items)
    return items[:0] if rows is None else rows
