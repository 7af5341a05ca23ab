"""FR-FMSS: fake marks hide which rows are rated, and additive shares among clients hide every value.

A client marks its rated items and as many unrated ones (fake marks: the pseudo items). Rows of fake marks are zero:
what hides them is that nobody sees any value. It draws one random vector over its marked rows for each of ``peers``
other clients, its *holders*, and takes all of them from its own vector. It adds what other clients gave it, and sends
that to the server. What was taken from one vector was added to others, so that the server's sum is exact.

Who learns what:

- the server: one masked vector per client, which is uniformly random without the shares, and the cohort's sums. Where
  not all rows are sent, which rows the vector spans: the client's marks together with those of the clients whose holder
  it is. The audit takes the stricter view that it sees each client's own marks, as holders do.
- a holder: which rows each of its clients marked, not which are fake, and no value.
- all holders of a client together with the server: that client's rows, where no share that it holds itself covers them;
  together with the clients whose holder it is as well: all its rows.

A holder that vanishes after it was given shares spoils the sum, and the round has to be begun again: FR-FMSS knows no
recovery. ``secure`` does. Clients that vanish before are left out. Nobody proves to be honest: semi-honest clients.

After: Lin, Pan, Ming 2021 (FR-FMSS)
Deviation: shares are uniform numbers of a ring, not real numbers: real ones hide a value only in part. A share travels
as the 32 bytes that it is drawn from, sealed to its holder. Holders are the next ones in a ring of random order.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fedrecplus.arrays import Items
from fedrecplus.parts.channel import RingChannel
from fedrecplus.parts.channel._ring import RingLayout, RingVector, add_all, decode
from fedrecplus.parts.channel._summing import RingSettings, encoded, widened
from fedrecplus.parts.channel.secure.masks import add_mask
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.randomness import subkey, uniform

SEED_BYTES = 32
SEALED_BYTES = SEED_BYTES + 16
"""a seed, encrypted and authenticated for its holder"""
KEY_BYTES = 32
"""a client's public key of the round"""


class Settings(RingSettings):
    """Options of the channel."""

    peers: ClassVar[int] = 3
    """clients among whom each one's rows are shared: all must collude"""


class Shares(RingChannel[Settings]):
    """Additive shares among clients."""

    SIMULATION_ONLY = True

    def add_up(self, uploads: Sequence[Upload], message: Broadcast, seed: int) -> tuple[Sums, Traffic]:
        """The cohort's sums, and what shares, lists and masked vectors cost.

        Noise of devices is not added here: a simulation draws that of all together (``rounds/release.py``).
        """
        vectors, encoding = encoded(uploads, message, self.settings, seed)
        layout = encoding.layout
        holders = holders_of(list(vectors), message.round, seed, self.settings.peers)
        traffic = traffic_of(vectors, holders, layout)
        sent = vectors
        if self.settings.cryptography == "computed":
            pairs = [(giver, holder) for giver, held_by in holders.items() for holder in held_by]
            sent = share_out(vectors, holders, layout, {pair: secrets.token_bytes(SEED_BYTES) for pair in pairs})
        return decode(add_all(sent.values(), layout), encoding), traffic


def traffic_of(vectors: Mapping[int, RingVector], holders: Mapping[int, Sequence[int]], layout: RingLayout) -> Traffic:
    """Bytes of public keys, sealed seeds with lists of rows, and masked vectors, without framing."""
    up = down = 0
    for giver, held_by in holders.items():
        message_bytes = KEY_BYTES + SEALED_BYTES + len(layout.to_bits(vectors[giver].rows))
        up += KEY_BYTES + len(held_by) * (message_bytes - KEY_BYTES)
        down += len(held_by) * message_bytes
    for rows in spans(vectors, holders).values():
        up += layout.bytes_of(layout.items if rows is None else len(rows)) + len(layout.to_bits(rows))
    return Traffic(up, down)


def holders_of(clients: Sequence[int], round_number: int, seed: int, peers: int) -> dict[int, tuple[int, ...]]:
    """Who holds each client's shares: the next ones in a ring of random order, drawn anew each round."""
    known = np.array(sorted(clients), dtype=np.int64)
    draws = uniform(subkey(seed, "share holders", round_number), known)
    order = known[np.argsort(draws, kind="stable")].tolist()
    count, reach = len(order), min(peers, len(order) - 1)
    return {
        client: tuple(order[(place + step) % count] for step in range(1, reach + 1))
        for place, client in enumerate(order)
    }


def share_out(
    vectors: Mapping[int, RingVector],
    holders: Mapping[int, Sequence[int]],
    layout: RingLayout,
    seeds: Mapping[Any, bytes],
) -> dict[int, RingVector]:
    """What each client sends to the server: its vector, less the shares it gave away, with the shares it was given.

    ``seeds`` has the seed of each share by (giver, holder). After: Lin, Pan, Ming 2021 (FR-FMSS)
    """
    sent = {client: widened(vectors[client], rows, layout) for client, rows in spans(vectors, holders).items()}
    for giver, held_by in holders.items():
        for holder in held_by:
            seed = seeds[giver, holder]
            add_mask(sent[giver], seed, layout, vectors[giver].rows, minus=True)
            add_mask(sent[holder], seed, layout, vectors[giver].rows)
    return sent


def spans(vectors: Mapping[int, RingVector], holders: Mapping[int, Sequence[int]]) -> dict[int, Items | None]:
    """The rows of what each client sends: its own and those of the clients whose holder it is; None: all."""
    rows = {client: [vector.rows] for client, vector in vectors.items()}
    for giver, held_by in holders.items():
        for holder in held_by:
            rows[holder].append(vectors[giver].rows)
    return {client: _union(several) for client, several in rows.items()}


def _union(several: Sequence[Items | None]) -> Items | None:
    known = [rows for rows in several if rows is not None]
    return None if len(known) < len(several) else np.unique(np.concatenate(known))
