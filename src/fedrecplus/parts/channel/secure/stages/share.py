"""Stage 2: of two secrets, a share for every neighbour, encrypted to it; the server passes them on.

After: Bonawitz et al. 2017, Figure 4, Round 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrecplus.parts.channel.secure import keys, shamir
from fedrecplus.parts.channel.secure.client_state import checked_neighbours
from fedrecplus.parts.channel.secure.messages import (
    VERSION,
    Inbox,
    Neighbourhood,
    Refused,
    SealedShares,
    cut,
    from_bits,
    pack,
    to_bits,
    unpack,
)
from fedrecplus.parts.channel.secure.server_state import sent_by

if TYPE_CHECKING:
    from fedrecplus.parts.channel.secure.client import SecureClient
    from fedrecplus.parts.channel.secure.server import SecureServer

SEALED_BYTES = 2 * shamir.SHARE_BYTES + 16
"""two shares and an authentication tag"""


def answer(client: SecureClient, neighbourhood: bytes) -> bytes:
    """A share of the mask key and one of the self-mask seed for every neighbour, encrypted to it."""
    client.comes_after("advertise", "share")
    state, secrets = client.state, client.secrets
    message = unpack(Neighbourhood, neighbourhood, state.session)
    adverts = checked_neighbours(message, state, secrets, client.pinned)
    client.once("share", neighbourhood)
    state.neighbourhood, client.adverts = neighbourhood, adverts
    draw, count = secrets.drawing(b"coefficients"), len(adverts)
    of_key = shamir.split(secrets.of(b"mask key"), count, message.threshold, draw)
    of_seed = shamir.split(secrets.of(b"self mask"), count, message.threshold, draw)
    sealed = []
    for place, other in enumerate(adverts):
        header = keys.pair(state.session, state.number, other)
        key = keys.derive(client.agree(other), b"shares", header)
        sealed.append(keys.seal(key, of_key[place] + of_seed[place], header))
    commitment = keys.commit(state.session, secrets.of(b"self mask"))
    return pack(SealedShares(VERSION, state.session, client.sender, commitment, b"".join(sealed)))


def opened(client: SecureClient, inbox: bytes) -> tuple[dict[int, bytes], list[int]]:
    """The shares that neighbours sealed for this client, and the neighbours whose shares don't open."""
    message, state = unpack(Inbox, inbox, client.state.session), client.state
    senders, plain, garbled = from_bits(message.present, list(client.neighbours())), {}, []
    for sender, sealed in zip(senders, cut(message.sealed, len(senders), SEALED_BYTES), strict=True):
        header = keys.pair(state.session, sender, state.number)
        try:
            plain[sender] = keys.unseal(keys.derive(client.agree(sender), b"shares", header), sealed, header, sender)
        except Refused:
            garbled.append(sender)
    return plain, garbled


def take(server: SecureServer, sender: int, data: bytes) -> None:
    """A client's encrypted shares, and what it says of its seed."""
    message = sent_by(unpack(SealedShares, data, server.session), sender)
    pieces = cut(message.sealed, len(server.neighbours[sender]), SEALED_BYTES)
    server.commitments[sender] = message.commitment
    server.shares[sender] = dict(zip(server.neighbours[sender], pieces, strict=True))


def close(server: SecureServer) -> dict[int, bytes]:
    """To each client, what its neighbours have encrypted for it."""
    server.need(len(server.shares), server.options.least_cohort, "shared their secrets")
    boxes = {}
    for client in server.shares:
        near = server.neighbours[client]
        sealed = b"".join(server.shares[other][client] for other in near if other in server.shares)
        boxes[client] = pack(Inbox(VERSION, server.session, to_bits(other in server.shares for other in near), sealed))
    return boxes
