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

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.transcript import Sent, Transcript
from fedrecplus.device import Device, Rows
from fedrecplus.protocol import Upload
from fedrecplus.randomness import subkey
from fedrecplus.rounds import client_round

_SETTLING = 5
"""local rounds that a made-up client trains in place of those that weren't recorded"""


@dataclass(frozen=True)
class Invented:
    """What a made-up client has rated, and the real client it is made after."""

    origin: int
    items: Items
    ratings: Array


class ShadowTranscript(Transcript):
    """The broadcasts of a real transcript with the uploads of made-up clients."""

    def __init__(self, source: Transcript, invented: Mapping[int, Invented], key: int) -> None:
        super().__init__(source.config, source.public, source.step, source.broadcasts, {}, {}, source.crowd)
        self.assumed, self.invented, self._source = source.assumed, invented, source
        self.sent = {client: _live(source, client, one, key) for client, one in invented.items()}

    @property
    def source(self) -> Transcript:
        """The transcript of real clients."""
        return self._source

    def origin(self, client: int) -> int:
        """The real client that this one is made after."""
        return self.invented[client].origin

    def rated(self, client: int, items: Items) -> NDArray[np.bool_]:
        """Which rows are rated: known, since the client is made up."""
        return np.isin(items, self.invented[client].items)


def _live(source: Transcript, client: int, one: Invented, key: int) -> list[Sent]:
    """A made-up client's rounds. In place of rounds that weren't recorded it trains a few times on the next one."""
    config, model = source.config, source.config.model
    U = model.start_users(subkey(key, "U"), np.array([client]), source.public)[0]
    device = Device(client, one.items, one.ratings, source.step, U, subkey(key, "secret", client))
    sent, last = [], -1
    for real in source.uploads(one.origin):
        message = source.broadcast(real.round)
        for _ in range(min(real.order - last - 1, _SETTLING)):
            device = client_round(replace(message, round=max(real.round - 1, 0)), device, config)[1]
        upload, device = client_round(message, device, config)
        sent.append(Sent(real.round, real.order, _as_seen(source, upload)))
        last = real.order
    return sent


def _as_seen(source: Transcript, upload: Upload) -> Upload:
    """What the server would see of an upload: the channel decides."""
    if "values" in source.shows:
        return replace(upload, delta=upload.delta.astype(np.float32))
    items = source.config.visible_rows(upload.items, len(source.public.popularity))
    return Upload(upload.client, items, np.zeros((len(items), 0)))


def trained_rows(transcript: Transcript, round_number: int, items: Items, ratings: Array, U: Array) -> Array:
    """How a client that has rated all these items would move their rows: Δ by the model's own training."""
    model, message = transcript.config.model, transcript.broadcast(round_number)
    device = Device(0, items, ratings, transcript.step, U, 0)
    rows = Rows(items, ratings, np.ones(len(items), dtype=bool))
    return model.local_training(device, rows, message).delta
