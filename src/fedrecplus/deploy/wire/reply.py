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
from fedrecplus.deploy.wire.packet import Facts, Packet, Refusal
from fedrecplus.deploy.wire.version import VERSION, mismatch
from fedrecplus.parts.aggregation.wasserstein import SMALLEST
from fedrecplus.protocol import ErrorReport, Upload

REASONS = ("version", "request", "rule", "catalogue", "scale", "settings", "storage", "store", "fault")
"""all that a node ever says when it can't take part: no text of an error, which might quote a rating"""
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

    @property
    def own_weights(self) -> bool:
        """Whether clients weigh themselves."""
        return bool(getattr(self.config.aggregation.options, "weigh_on", "server") == "client")


@dataclass(frozen=True)
class Reply:
    """A node's reply that may touch the model."""

    uploads: list[Upload]
    report: ErrorReport | None
    bytes: int


def encode_reply(
    model: str, round_number: int, columns: int, uploads: Sequence[Upload], report: ErrorReport | None, config: Config
) -> Packet:
    """The uploads of a node's persons, end to end. Item numbers travel in 32 bits, deltas in ``config.precision``."""
    number = np.dtype(config.precision)
    arrays: dict[str, NDArray[Any]] = {
        "clients": np.array([upload.client for upload in uploads], dtype=np.int64),
        "rows": np.array([len(upload.items) for upload in uploads], dtype=np.int32),
        "items": np.concatenate([np.empty(0, np.int32), *(upload.items.astype(np.int32) for upload in uploads)]),
        "delta": np.concatenate([np.empty((0, columns), number), *(u.delta.astype(number) for u in uploads)]),
    }
    if getattr(config.aggregation.options, "weigh_on", "server") == "client":
        arrays["weights"] = np.array([upload.weight for upload in uploads], dtype=np.float64)
    facts: Facts = {"version": VERSION, "model": model, "round": round_number}
    if report is not None:
        facts.update(squared_error=report.squared, rated=report.ratings)
    return Packet(facts, arrays)


def encode_refusal(reason: str) -> Packet:
    """The reply of a node that can't take part: one of ``REASONS``, nothing else."""
    return Packet({"version": VERSION, "refusal": reason}, {})


def decode_reply(packet: Packet, terms: RoundTerms) -> Reply:
    """The uploads in a reply, all of them sound; otherwise ``Refusal``."""
    _check_facts(packet, terms)
    _check_size(packet, terms)
    if strange := packet.arrays.keys() - _LAYOUT.keys() - {"weights"}:
        raise Refusal("malformed", f"{len(strange)} arrays that nobody asked for")
    clients, rows, items, delta = (_array(packet, name) for name in _LAYOUT)
    if delta.shape != (len(items), terms.shape[1]) or len(rows) != len(clients):
        raise Refusal("malformed", "arrays that don't fit together")
    if (rows < 1).any() or int(rows.sum(dtype=np.int64)) != len(items):
        raise Refusal("malformed", "row counts that don't add up")
    if len(np.unique(clients)) != len(clients) or not _within(clients, _CLIENT_NUMBERS):
        raise Refusal("malformed", "client numbers twice or out of range")
    ends, delta = np.cumsum(rows, dtype=np.int64), delta.astype(np.float64)
    weights = _weights(packet, len(clients), terms)
    _check_items(items, ends, terms.shape[0])
    if not np.isfinite(delta).all():
        raise Refusal("non-finite", "delta")
    most = terms.largest_change * np.repeat(weights, rows)  # a client that weighs itself sends w·Δ
    if (np.abs(delta) > most[:, None]).any():
        raise Refusal("out-of-range", f"an update is greater than {terms.largest_change:g}")
    uploads = [
        Upload(int(client), items[end - count : end].astype(np.int64), delta[end - count : end], own)
        for client, count, end, own in zip(
            clients, rows.tolist(), ends.tolist(), weights.tolist() if terms.own_weights else [None] * len(rows),
            strict=True,
        )
    ]  # fmt: skip
    return Reply(uploads, _report(packet), packet.size)


def _check_facts(packet: Packet, terms: RoundTerms) -> None:
    wrong = mismatch(packet.facts.get("version"), "the node")
    if wrong:
        raise Refusal("version", wrong, blame=False)
    if "refusal" in packet.facts:
        word = str(packet.facts["refusal"])
        raise Refusal(f"node-{word}" if word in REASONS else "malformed", blame=word not in REASONS)
    if packet.facts.get("model") != terms.model:
        raise Refusal("malformed", "another model")
    if packet.facts.get("round") != terms.round:
        raise Refusal("late", f"round {packet.facts.get('round')!s:.20} instead of {terms.round}")


def _check_size(packet: Packet, terms: RoundTerms) -> None:
    clients = packet.arrays.get("clients")
    count = len(clients) if clients is not None and clients.ndim == 1 else 0
    if count > terms.clients_per_node:
        raise Refusal("oversized", f"{count} persons, at most {terms.clients_per_node} are allowed")
    row_bytes = 8 * (terms.shape[1] + 1)
    if packet.size > count * (terms.shape[0] * row_bytes + 64) + 1024:
        raise Refusal("oversized", f"{packet.size} bytes for {count} persons")


def _array(packet: Packet, name: str) -> NDArray[Any]:
    table = packet.arrays.get(name)
    if table is None or table.dtype.kind != _LAYOUT[name] or table.ndim != (2 if name == "delta" else 1):
        raise Refusal("malformed", f"{name} is missing or of the wrong kind")
    return table


def _weights(packet: Packet, count: int, terms: RoundTerms) -> NDArray[np.float64]:
    """The clients' own weights where they weigh themselves, ones elsewhere."""
    weights = packet.arrays.get("weights")
    if not terms.own_weights:
        if weights is not None:
            raise Refusal("malformed", "weights that nobody asked for")
        return np.ones(count)
    if weights is None or weights.shape != (count,) or weights.dtype.kind != "f":
        raise Refusal("malformed", "weights are missing")
    if not np.isfinite(weights).all():
        raise Refusal("non-finite", "weights")
    largest = SMALLEST ** -getattr(terms.config.aggregation.options, "temperature", 1.0)
    if (weights <= 0).any() or (weights > largest).any():
        raise Refusal("out-of-range", "weights")
    return weights.astype(np.float64)


def _check_items(items: NDArray[Any], ends: NDArray[np.int64], item_count: int) -> None:
    if not _within(items, item_count):
        raise Refusal("out-of-range", "item numbers")
    rising = np.diff(items.astype(np.int64)) > 0
    rising[ends[:-1] - 1] = True  # where the next client's items begin
    if not rising.all():
        raise Refusal("malformed", "items twice or out of order")


def _within(numbers: NDArray[Any], end: int) -> bool:
    return len(numbers) == 0 or bool(0 <= numbers.min() <= numbers.max() < end)


def _report(packet: Packet) -> ErrorReport | None:
    squared, rated = packet.facts.get("squared_error"), packet.facts.get("rated")
    if not isinstance(squared, float) or not isinstance(rated, int):
        return None
    sound = np.isfinite(squared) and squared >= 0 and 0 < rated < 2**40
    return ErrorReport(squared, rated) if sound else None
