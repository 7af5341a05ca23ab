"""What an upload must be to touch the model. Everything else is refused, with a word for the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation.wasserstein import SMALLEST
from fedrecplus.config import Config
from fedrecplus.deploy.answering import REASONS
from fedrecplus.deploy.packet import Packet
from fedrecplus.deploy.settings import Deployment
from fedrecplus.deploy.versions import mismatch
from fedrecplus.protocol import ErrorReport, Upload

_MOST_CLIENT = 2**62


class Refusal(Exception):
    """An answer that is not taken. ``kind`` is one word; ``blame`` whether it counts against the node."""

    def __init__(self, kind: str, detail: str = "", *, blame: bool = True) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail
        self.blame = blame


@dataclass(frozen=True)
class Expected:
    """What the server asked for in a round."""

    round: int
    shape: tuple[int, ...]
    config: Config
    deployment: Deployment


@dataclass(frozen=True)
class Answer:
    """A node's answer that may touch the model."""

    uploads: list[Upload]
    report: ErrorReport | None
    bytes: int


def checked(packet: Packet, expected: Expected) -> Answer:
    """The uploads in an answer, all of them sound; otherwise ``Refusal``."""
    _check_facts(packet, expected)
    _check_size(packet, expected)
    strange = packet.arrays.keys() - {name for name, _ in _LAYOUT} - {"weights"}
    if strange:
        raise Refusal("malformed", f"{len(strange)} arrays that nobody asked for")
    clients, rows, items, delta = (_array(packet, name, kinds) for name, kinds in _LAYOUT)
    weights = _weights(packet, len(clients), expected.config)
    if delta.shape != (len(items), expected.shape[1]) or len(rows) != len(clients):
        raise Refusal("malformed", "arrays that don't fit together")
    if (rows < 1).any() or int(rows.sum(dtype=np.int64)) != len(items):
        raise Refusal("malformed", "row counts that don't add up")
    if len(np.unique(clients)) != len(clients) or (
        len(clients) and not 0 <= clients.min() <= clients.max() < _MOST_CLIENT
    ):
        raise Refusal("malformed", "client numbers twice or out of range")
    _check_items(items, rows, expected.shape[0])
    _check_values(delta, expected)
    ends = np.cumsum(rows, dtype=np.int64)
    uploads = [
        Upload(
            int(client), items[end - count : end].astype(np.int64), delta[end - count : end].astype(np.float64), weight
        )
        for client, count, end, weight in zip(clients, rows.astype(np.int64), ends, weights, strict=True)
    ]
    return Answer(uploads, _report(packet), packet.size)


_LAYOUT = (("clients", "i"), ("rows", "i"), ("items", "i"), ("delta", "f"))


def _check_facts(packet: Packet, expected: Expected) -> None:
    wrong = mismatch(packet.facts.get("version"), "the node")
    if wrong:
        raise Refusal("version", wrong, blame=False)
    if "refusal" in packet.facts:
        word = str(packet.facts["refusal"])
        raise Refusal(f"node-{word}" if word in REASONS else "malformed", blame=word not in REASONS)
    if packet.facts.get("model") != expected.deployment.model:
        raise Refusal("malformed", "another model")
    if packet.facts.get("round") != expected.round:
        raise Refusal("late", f"round {packet.facts.get('round')!s:.20} instead of {expected.round}")


def _check_size(packet: Packet, expected: Expected) -> None:
    clients = packet.arrays.get("clients")
    count = len(clients) if clients is not None and clients.ndim == 1 else 0
    if count > expected.deployment.clients_per_node:
        raise Refusal("oversized", f"{count} persons, at most {expected.deployment.clients_per_node} are allowed")
    row_bytes = 8 * (expected.shape[1] + 1)
    most = count * (expected.shape[0] * row_bytes + 64) + 1024
    if packet.size > most:
        raise Refusal("oversized", f"{packet.size} bytes for {count} persons")


def _array(packet: Packet, name: str, kind: str) -> NDArray[Any]:
    table = packet.arrays.get(name)
    if table is None or table.dtype.kind != kind or table.ndim != (2 if name == "delta" else 1):
        raise Refusal("malformed", f"{name} is missing or of the wrong kind")
    return table


def _weights(packet: Packet, count: int, config: Config) -> list[float | None]:
    """The clients' own weights where they weigh themselves, and none elsewhere."""
    weights = packet.arrays.get("weights")
    if config.aggregation.weigh_on == "server":
        if weights is not None:
            raise Refusal("malformed", "weights that nobody asked for")
        return [None] * count
    if weights is None or weights.shape != (count,) or weights.dtype.kind != "f":
        raise Refusal("malformed", "weights are missing")
    if not np.isfinite(weights).all():
        raise Refusal("non-finite", "weights")
    most = SMALLEST**-config.aggregation.temperature
    if (weights <= 0).any() or (weights > most).any():
        raise Refusal("out-of-range", "weights")
    return [float(weight) for weight in weights]


def _check_items(items: NDArray[Any], rows: NDArray[Any], item_count: int) -> None:
    if len(items) and not 0 <= items.min() <= items.max() < item_count:
        raise Refusal("out-of-range", "item numbers")
    rising = np.diff(items.astype(np.int64)) > 0
    starts = np.cumsum(rows, dtype=np.int64)[:-1]
    rising[starts - 1] = True
    if not rising.all():
        raise Refusal("malformed", "items twice or out of order")


def _check_values(delta: NDArray[Any], expected: Expected) -> None:
    if not np.isfinite(delta).all():
        raise Refusal("non-finite", "delta")
    limit = expected.deployment.largest_move
    if delta.size and np.abs(delta).max() > limit:
        raise Refusal("out-of-range", f"a factor moved by more than {limit:g}")


def _report(packet: Packet) -> ErrorReport | None:
    squared, rated = packet.facts.get("squared_error"), packet.facts.get("rated")
    if not isinstance(squared, float) or not isinstance(rated, int):
        return None
    sound = np.isfinite(squared) and squared >= 0 and 0 < rated < 2**40
    return ErrorReport(squared, rated) if sound else None
