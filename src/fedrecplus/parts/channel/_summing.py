"""What channels share that add up integers: their options, a round's encoding, and everybody's vector."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.device import Device
from fedrecplus.errors import UserError
from fedrecplus.parts.channel._ring import (
    WEIGHT_BITS,
    Encoding,
    RingLayout,
    RingVector,
    contributors,
    encode,
    encoding_of,
    is_clipped,
    of_both_signs,
    zeros,
)
from fedrecplus.protocol import Broadcast, PublicItems, Upload
from fedrecplus.randomness import keys as keys_of, subkey
from fedrecplus.settings import Annotated, Settings, number, text

_log = logging.getLogger("fedrecplus")
_clipped_rounds = itertools.count(1)


class RingSettings(Settings):
    """Options of every channel that adds up integers."""

    rows: Annotated[
        Literal["whole", "blocks", "rows"],
        text("what a client sends: the whole table, public blocks that hold one of its items, or its items' rows"),
    ] = "whole"
    block_size: ClassVar[int] = 32
    """successive items of a block"""
    weights: Annotated[
        Literal["public", "sent"],
        text("Σw of a row: by public counts, or summed, which shows exact counts; parts of a table always send theirs"),
    ] = "public"
    bits: Annotated[int, number(16, 32, "of the ring that changes of rows are summed in: 16 or 32")] = 32
    bound: Annotated[float, number(1e-3, 1e4, "largest |w·Δ| that a client sends; greater numbers are clipped")] = 8.0
    largest_weight: ClassVar[float] = 64.0
    """largest aggregation weight, greater ones are clipped: twice what a client that weighs itself may have"""
    statistic_bound: Annotated[
        float, number(1e-3, 1e6, "largest number of the model's statistic; greater ones are clipped")
    ] = 64.0
    fewest_contributors: Annotated[
        int, number(1, 10**6, "rows with fewer expected in the cohort, by public counts, are zeroed before masking")
    ] = 6
    least_cohort: Annotated[int, number(2, 10**6, "no sum of fewer clients than this")] = 10
    cryptography: Annotated[
        Literal["skipped", "computed"],
        text("simulation: compute masks, shares or ciphertexts, or the same sums without; seconds need them computed"),
    ] = "skipped"

    def counts_raters(self, *, all_items: bool) -> bool:
        """Whether Σw of a row says how many in the sum rated it; not where everybody uploads rows of all items."""
        return not all_items and (self.weights == "sent" or self.rows != "whole")


def layout_of(shape: tuple[int, ...], statistic_size: int, settings: RingSettings) -> RingLayout:
    """The shape of everybody's vectors."""
    block = {"whole": 0, "blocks": settings.block_size, "rows": 1}[settings.rows]
    return RingLayout(shape[0], shape[1], settings.bits, statistic_size, block, block > 0 or settings.weights == "sent")


def encoding_for(
    layout: RingLayout,
    public: PublicItems,
    cohort: int,
    settings: RingSettings,
    senders: Items | None = None,
    silos: int = 0,
    noise: int = 0,
    clipped_unit: float | None = None,
) -> Encoding:
    """The fixed-point numbers of a round, from public figures.

    Whole tables: a row's range is made for its public count where that is exact, else for the whole cohort. Where rows
    differ, everybody sees how many clients span a row (``senders``), pseudo items included, and these count; ``silos``
    are the persons beyond one that each of them may speak for. ``noise`` is the room for the devices' own, counted in
    contributions at the bound. ``clipped_unit`` is what a clipped person adds beside the statistic.
    """
    if layout.whole or senders is None:
        # counts of others say little of how many these are, and under a budget counts are weighted and noisy
        exact = public.source in ("participants", "secure-sum") and public.epsilon is None
        most = contributors(public.popularity, cohort) if exact else np.full(layout.items, max(cohort, 1))
        left_out = expected_in(cohort, public) < settings.fewest_contributors
    else:
        most = np.minimum(senders + silos, cohort)
        left_out = senders < 2 * settings.fewest_contributors  # some may vanish
    if layout.bits < WEIGHT_BITS:
        most = of_both_signs(most)
    expected = public.popularity / max(public.people or cohort, 1)
    return encoding_of(
        layout, most + noise, cohort + noise, settings.bound, settings.largest_weight, settings.statistic_bound,
        left_out, expected, clipped_unit,
    )  # fmt: skip


def expected_in(cohort: int, public: PublicItems) -> Array:
    """Of each row, how many of a cohort are expected to have rated it, by public counts.

    Counts are of ``people``, be they the participants or others. Where nobody says of how many, they are the cohort.
    No row is expected of more than its count: how many a cohort is, any node of it can exaggerate.
    """
    people = public.people or cohort
    return np.asarray(public.popularity * (min(cohort, people) / max(people, 1)))


def never_summed(public: PublicItems, settings: RingSettings) -> NDArray[np.bool_]:
    """Rows that are in no sum of whole tables, however many people there are: too few are known to have rated them."""
    return (expected_in(public.people or 1, public) < settings.fewest_contributors) & (settings.rows == "whole")


def least_persons(columns: int) -> int:
    """The fewest persons whose sums of so many columns are not taken apart: three a column, and 100.

    What a person adds to the rows of one table is one direction, times a number for each row. Of fewer persons than
    columns all directions are found, and everybody's list with them. Beyond, only those are found whose rows nobody
    else rated; ``fewest_contributors`` leaves such rows out.

    Ours: measured (docs/sums-measured.md)

    >>> least_persons(64), least_persons(4)
    (192, 100)
    """
    return max(3 * columns, 100)


def senders_of(rows: Iterable[Items | None], layout: RingLayout) -> Items | None:
    """How many clients span each row; None where everybody spans all."""
    if layout.whole:
        return None
    counts = np.zeros(layout.items, dtype=np.int64)
    for each in rows:
        counts[each] += 1
    return counts


def too_few(before: Items, after: Items, fewest: int) -> NDArray[np.bool_]:
    """Rows that count, since twice ``fewest`` clients advertised them, and that too few survivors span."""
    return np.asarray((before >= 2 * fewest) & (after < fewest))


def rounding_keys(clients: Sequence[int], round_number: int, seed: int) -> dict[int, int]:
    """What decides where a simulated client rounds up and where down; on a real device the operating system does."""
    of_all = keys_of(subkey(seed, "rounding", round_number), np.array(clients, dtype=np.int64))
    return dict(zip(clients, of_all.tolist(), strict=True))


def rounding_norm(numbers: int, statistic: int, clients: int, settings: RingSettings) -> float:
    """The most that rounding to the nearest step can add to the L2 norm of one client's changes and statistic.

    A ring may have been made for four times the clients that are left in the sum: of a cohort up to half may vanish,
    and silos count as the next power of two.
    """
    room = 4 * max(clients, 1)
    step, of_statistic = (
        bound / max((2 ** (bits - 1) - 1) // room, 1)
        for bound, bits in ((settings.bound, settings.bits), (settings.statistic_bound, WEIGHT_BITS))
    )
    squares = numbers * step**2 + statistic * of_statistic**2
    return 0.5 * float(np.sqrt(squares))


def mark(devices: Mapping[int, Device], uploads: Mapping[int, Upload]) -> dict[int, Upload]:
    """Uploads whose rows of pseudo items are zero and weigh nothing: where nobody sees a value, a mark is enough.

    After: Lin, Pan, Ming 2021 (FR-FMSS, fake marks)
    """
    marked = {}
    for client, upload in uploads.items():
        rated = np.isin(upload.items, devices[client].items)
        delta = np.where(rated[:, None], upload.delta, 0.0)
        marked[client] = replace(upload, delta=delta, counts=rated.astype(np.int64))
    return marked


def encoded(
    uploads: Sequence[Upload], message: Broadcast, settings: RingSettings, seed: int
) -> tuple[dict[int, RingVector], Encoding]:
    """Everybody's integers, and the round's encoding.

    Fewer than the least cohort are no sum. Rows of fake marks (count 0) are zero.
    """
    if len(uploads) < settings.least_cohort:
        raise UserError(
            f"round {message.round}: {len(uploads)} clients are no sum, channel.least_cohort = {settings.least_cohort}",
            "ask more clients (cohort.fraction, cohort.dropout)",
        )
    rows, encoding = spanned(uploads, message, settings)
    return vectors_of(uploads, rows, encoding, message.round, seed), encoding


def spanned(
    uploads: Sequence[Upload], message: Broadcast, settings: RingSettings
) -> tuple[dict[int, Items | None], Encoding]:
    """The rows that each client's vector spans, and the round's encoding, which is made of public figures."""
    layout = layout_of(message.V.shape, len(uploads[0].statistic) if uploads else 0, settings)
    rows = {upload.client: layout.rows_for(upload.items) for upload in uploads}
    return rows, encoding_for(layout, message.public, len(uploads), settings, senders_of(rows.values(), layout))


def vectors_of(
    uploads: Sequence[Upload], rows: Mapping[int, Items | None], encoding: Encoding, round_number: int, seed: int
) -> dict[int, RingVector]:
    """Everybody's integers over the rows that each client spans."""
    keys = rounding_keys([upload.client for upload in uploads], round_number, seed)
    sent = {upload.client: without_marks(upload) for upload in uploads}
    warn_of_clipping(sum(is_clipped(upload, encoding) for upload in sent.values()), round_number)
    vectors = {client: encode(upload, encoding, keys[client]) for client, upload in sent.items()}
    return {client: widened(vector, rows[client], encoding.layout) for client, vector in vectors.items()}


def warn_of_clipping(clients: int, round_number: int) -> None:
    """In a simulation everybody's numbers are at hand; a deployment's server can't tell.

    It is said of the first such round, the tenth, the hundredth: a search has thousands of them.
    """
    if clients and (rounds := next(_clipped_rounds)) == 10 ** (len(str(rounds)) - 1):
        so_far = f" ({rounds:,} such rounds so far)" if rounds > 1 else ""
        said = "round %d: numbers of %d clients are clipped%s; a greater channel.bound clips fewer"
        _log.warning(said, round_number, clients, so_far)


def without_marks(upload: Upload) -> Upload:
    """An upload without its fake marks."""
    if upload.counts is None:
        return upload
    rated = upload.counts != 0
    return replace(upload, items=upload.items[rated], delta=upload.delta[rated], counts=None)


def widened(vector: RingVector, rows: Items | None, layout: RingLayout) -> RingVector:
    """The vector over more rows, which are zero."""
    if vector.rows is None or (rows is not None and len(rows) == len(vector.rows)):
        return vector
    wide = zeros(layout, rows)
    wide.add(vector)
    return wide
