"""What a node replies, and what a reply must be to touch the model. Everything else is refused, with one word.

What isn't a field of ``protocol.Upload`` or ``protocol.ErrorReport`` has no place in a reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.deploy.wire.packet import VERSION, Facts, Packet, Refusal, check_reply
from fedrecplus.deploy.wire.request import Request
from fedrecplus.protocol import ErrorReport, Upload

_LAYOUT = {"clients": "i", "rows": "i", "items": "i", "delta": "f"}
"""arrays of a reply, and the kind of their numbers; ``weights`` come along where clients weigh themselves"""
_CLIENT_NUMBERS = 2**62


@dataclass(frozen=True)
class RoundTerms:
    """What the server asked for in a round, and the most that it believes."""

    model: str
    round: int
    shape: tuple[int, ...]
    """of V"""
    config: Config
    clients_per_node: int
    largest_change: float
    """greatest number of an update"""


def encode_reply(request: Request, uploads: Sequence[Upload], report: ErrorReport | None) -> Packet:
    """The uploads of a node's persons, end to end. Item numbers travel in 32 bits, deltas in ``config.precision``."""
    config = request.config
    arrays = end_to_end(uploads, request.V.shape[1])
    arrays |= {"items": arrays["items"].astype(np.int32), "delta": arrays["delta"].astype(config.precision)}
    if config.aggregation.weighs_on_client:
        arrays["weights"] = np.array([upload.weight for upload in uploads], dtype=np.float64)
    facts: Facts = {"version": VERSION, "model": request.model, "round": request.round}
    if report is not None:
        facts.update(squared_error=report.squared, rated=report.ratings)
    return Packet(facts, arrays)


def end_to_end(uploads: Sequence[Upload], columns: int) -> dict[str, NDArray[Any]]:
    """Uploads one after the other, and how many rows each has."""
    return {
        "clients": np.array([upload.client for upload in uploads], dtype=np.int64),
        "rows": np.array([len(upload.items) for upload in uploads], dtype=np.int32),
        "items": np.concatenate([np.empty(0, np.int64), *(upload.items for upload in uploads)]),
        "delta": np.concatenate([np.empty((0, columns)), *(upload.delta for upload in uploads)]),
    }


def slices_of(rows: NDArray[Any]) -> list[slice]:
    """Where each upload's rows are."""
    ends = np.cumsum(rows, dtype=np.int64)
    return [slice(int(end - count), int(end)) for count, end in zip(rows, ends, strict=True)]


def encode_refusal(reason: str) -> Packet:
    """The reply of a node that can't take part: one of ``REASONS``, nothing else."""
    return Packet({"version": VERSION, "refusal": reason}, {})


def decode_reply(packet: Packet, terms: RoundTerms) -> tuple[list[Upload], ErrorReport | None]:
    """The uploads in a reply, all of them sound, and the report if there is one; otherwise ``Refusal``."""
    _check_facts(packet, terms)
    _check_size(packet, terms)
    strange = packet.arrays.keys() - _LAYOUT.keys() - {"weights"}
    _demand(not strange, "malformed", f"{len(strange)} arrays that nobody asked for")
    clients, rows, items, delta = (_array(packet, name) for name in _LAYOUT)
    fit = delta.shape == (len(items), terms.shape[1]) and len(rows) == len(clients)
    _demand(fit, "malformed", "arrays that don't fit together")
    whole = (rows > 0).all() and int(rows.sum(dtype=np.int64)) == len(items)
    _demand(whole, "malformed", "row counts that don't add up")
    apart = len(np.unique(clients)) == len(clients) and _within(clients, _CLIENT_NUMBERS)
    _demand(apart, "malformed", "client numbers twice or out of range")
    with np.errstate(invalid="ignore"):  # of signalling NaNs, which are refused below
        delta = delta.astype(np.float64)
    weights = _weights(packet, len(clients), terms.config)
    _demand(_within(items, terms.shape[0]), "out-of-range", "item numbers")
    rising = np.diff(items.astype(np.int64)) > 0
    rising[np.cumsum(rows[:-1], dtype=np.int64) - 1] = True  # where the next client's items begin
    _demand(rising.all(), "malformed", "items twice or out of order")
    _demand(np.isfinite(delta).all(), "non-finite", "delta")
    most = terms.largest_change * np.repeat(weights, rows)[:, None]  # a client that weighs itself sends w·Δ
    _demand((np.abs(delta) <= most).all(), "out-of-range", f"an update is greater than {terms.largest_change:g}")
    own = weights.tolist() if terms.config.aggregation.weighs_on_client else [None] * len(rows)
    uploads = [
        Upload(int(client), items[here].astype(np.int64), delta[here], weight)
        for client, here, weight in zip(clients, slices_of(rows), own, strict=True)
    ]
    return uploads, _report(packet)


def _demand(sound: Any, kind: str, detail: str) -> None:
    if not sound:
        raise Refusal(kind, detail)


def _check_facts(packet: Packet, terms: RoundTerms) -> None:
    check_reply(packet)
    _demand(packet.facts.get("model") == terms.model, "malformed", "another model")
    said = packet.facts.get("round")
    _demand(said == terms.round, "late", f"round {said!s:.20} instead of {terms.round}")


def _check_size(packet: Packet, terms: RoundTerms) -> None:
    clients = packet.arrays.get("clients")
    count = len(clients) if clients is not None and clients.ndim == 1 else 0
    few = count <= terms.clients_per_node
    _demand(few, "oversized", f"{count} persons, at most {terms.clients_per_node} are allowed")
    most = count * (terms.shape[0] * 8 * (terms.shape[1] + 1) + 64) + 1024
    _demand(packet.size <= most, "oversized", f"{packet.size} bytes for {count} persons")


def _array(packet: Packet, name: str) -> NDArray[Any]:
    table = packet.arrays.get(name)
    if table is None or table.dtype.kind != _LAYOUT[name] or table.ndim != (2 if name == "delta" else 1):
        raise Refusal("malformed", f"{name} is missing or of the wrong kind")
    return table


def _weights(packet: Packet, count: int, config: Config) -> NDArray[np.float64]:
    """The clients' own weights where they weigh themselves, ones elsewhere."""
    weights = packet.arrays.get("weights")
    if not config.aggregation.weighs_on_client:
        _demand(weights is None, "malformed", "weights that nobody asked for")
        return np.ones(count)
    if weights is None or weights.shape != (count,) or weights.dtype.kind != "f":
        raise Refusal("malformed", "weights are missing")
    _demand(np.isfinite(weights).all(), "non-finite", "weights")
    _demand(((weights > 0) & (weights <= config.aggregation.largest_weight)).all(), "out-of-range", "weights")
    return weights.astype(np.float64)


def _within(numbers: NDArray[Any], end: int) -> bool:
    return len(numbers) == 0 or bool(0 <= numbers.min() <= numbers.max() < end)


def _report(packet: Packet) -> ErrorReport | None:
    squared, rated = packet.facts.get("squared_error"), packet.facts.get("rated")
    if not isinstance(squared, float) or not isinstance(rated, int):
        return None
    return ErrorReport(squared, rated) if 0 <= squared < np.inf and 0 < rated < 2**40 else None
