"""Clients that an attacker invents: fed with guesses about real ones, and run through the known client function.

The server knows the algorithm. It takes rows of a real upload for the ratings of a made-up client, gives it a secret of
its own and lets it train on the broadcasts that the real clients got. Of the uploads that come out it knows which rows
are rated. This module knows no more than a transcript does: what it runs is the client's program, not a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.transcript import Sent, Transcript
from fedrecplus.device import Device
from fedrecplus.model import start_U
from fedrecplus.randomness import subkey
from fedrecplus.rounds.client import client_round

Array = NDArray[np.float64]
_SETTLING = 5
"""local rounds that a made-up client trains in place of those that weren't recorded"""


@dataclass(frozen=True)
class Invented:
    """What a made-up client has rated, and the real client it is made after."""

    origin: int
    items: NDArray[np.int64]
    ratings: Array


class ShadowTranscript(Transcript):
    """The broadcasts of a real transcript with the uploads of made-up clients."""

    def __init__(self, source: Transcript, invented: Mapping[int, Invented], key: int) -> None:
        super().__init__(source.folder)
        self.source = source
        self.invented = invented
        self._sent = {client: _live(source, client, one, key) for client, one in invented.items()}

    @property
    def clients(self) -> tuple[int, ...]:
        """The made-up clients."""
        return tuple(self.invented)

    def uploads(self, client: int) -> tuple[Sent, ...]:
        """A made-up client's uploads in the recorded rounds."""
        return self._sent[client]

    def origin(self, client: int) -> int:
        """The real client that this one is made after."""
        return self.invented[client].origin

    def rated(self, client: int, items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows are rated: known, since the client is made up."""
        return np.isin(items, self.invented[client].items)


def _live(source: Transcript, client: int, one: Invented, key: int) -> tuple[Sent, ...]:
    """A made-up client's rounds. In place of rounds that weren't recorded it trains a few times on the next one."""
    config = source.config
    U = start_U(subkey(key, "U"), np.array([client]), config.model, source.mean)[0]
    device = Device(client, one.items, one.ratings, source.step, U, subkey(key, "secret", client))
    orders = [sent.order for sent in source.uploads(one.origin)]
    sent, last = [], -1
    for t, order in zip((sent.round for sent in source.uploads(one.origin)), orders, strict=True):
        message = source.broadcast(t)
        for _ in range(min(order - last - 1, _SETTLING)):
            device = client_round(replace(message, round=max(t - 1, 0)), device, config)[1]
        upload, device = client_round(message, device, config)
        sent.append(Sent(t, order, replace(upload, delta=upload.delta.astype(np.float32).astype(np.float64))))
        last = order
    return tuple(sent)
