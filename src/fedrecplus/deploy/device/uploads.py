"""The persons' uploads as the store keeps them for a secure sum, in full precision; they never leave in this form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.reply import end_to_end, slices_of
from fedrecplus.protocol import Upload


def uploads_packet(uploads: Sequence[Upload], columns: int) -> Packet:
    """Uploads end to end."""
    statistic = max((len(upload.statistic) for upload in uploads), default=0)
    arrays = end_to_end(uploads, columns) | {
        "weights": np.array([np.nan if u.weight is None else u.weight for u in uploads], dtype=np.float64),
        "clipped": np.array([upload.clipped for upload in uploads], dtype=bool),
        "statistic": np.array([u.statistic for u in uploads], dtype=np.float64).reshape(len(uploads), statistic),
    }
    if any(upload.counts is not None for upload in uploads):
        counts = (np.ones(len(u.items), np.int64) if u.counts is None else u.counts for u in uploads)
        arrays["counts"] = np.concatenate(list(counts))
    return Packet({}, arrays)


def uploads_of(packet: Packet) -> list[Upload]:
    """What ``uploads_packet`` packed."""
    names = ("clients", "rows", "items", "delta", "weights", "statistic", "clipped")
    clients, rows, items, delta, weights, statistic, clipped = (packet.arrays[name] for name in names)
    counts = packet.arrays.get("counts")
    uploads = []
    for place, here in enumerate(slices_of(rows)):
        weight = float(weights[place])
        own = None if np.isnan(weight) else weight
        marks = None if counts is None else counts[here]
        beside = (marks, statistic[place], bool(clipped[place]))
        uploads.append(Upload(int(clients[place]), items[here], delta[here], own, *beside))
    return uploads
