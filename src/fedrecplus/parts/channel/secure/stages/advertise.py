"""Stage 1: everybody's fresh public keys; the server says who is whose neighbour.

After: Bonawitz et al. 2017, Figure 4, Round 0, with the neighbours of Bell et al. 2020
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrecplus.parts.channel.secure import graph, keys
from fedrecplus.parts.channel.secure.messages import (
    SIGNATURE_BYTES,
    VERSION,
    Advertisement,
    Neighbourhood,
    Refused,
    pack,
    unpack,
)
from fedrecplus.parts.channel.secure.server_state import sent_by

if TYPE_CHECKING:
    from fedrecplus.parts.channel.secure.client import SecureClient
    from fedrecplus.parts.channel.secure.server import SecureServer


def answer(client: SecureClient) -> bytes:
    """Fresh public keys, signed where identities are pinned."""
    client.once("advertise", b"")
    state = client.state
    cipher, mask = (
        keys.public_key(client.secrets.private(b"cipher key")),
        keys.public_key(client.secrets.private(b"mask key")),
    )
    signature = b""
    if client.identity is not None:
        content = keys.signed_keys(state.session, state.number, cipher, mask, state.rows)
        signature = keys.sign(client.identity, b"advertise", content)
    return pack(Advertisement(VERSION, state.session, client.sender, cipher, mask, state.rows, signature))


def take(server: SecureServer, sender: int, data: bytes) -> None:
    """A client's keys. What a neighbour would refuse later, and without a name, is refused here."""
    message = sent_by(unpack(Advertisement, data, server.session), sender)
    try:
        server.layout.from_bits(message.rows)
    except ValueError as error:
        raise Refused(f"client {sender}: {error}") from None
    if len(message.signature) != (SIGNATURE_BYTES if server.pinned is not None else 0):
        raise Refused(f"client {sender}: a signature of {len(message.signature)} bytes")
    for key in (message.cipher_key, message.mask_key):
        try:
            keys.agree(server.probe, key, b"probe", server.session)
        except Refused as refused:
            raise Refused(f"client {sender}: {refused}") from None
    if message.cipher_key == message.mask_key:
        raise Refused(f"client {sender} has one key for both purposes")
    if any({message.cipher_key, message.mask_key} & {a.cipher_key, a.mask_key} for a in server.adverts.values()):
        raise Refused(f"client {sender} has a key that somebody else has")
    if server.pinned is not None:
        keys.check_signature(message, server.pinned)
    server.adverts[sender] = message


def close(server: SecureServer) -> dict[int, bytes]:
    """Draw the graph of neighbours; to each client, its neighbours' keys."""
    clients, options = sorted(server.adverts), server.options
    server.need(len(clients), max(options.least_cohort, 2), "advertised keys")
    # rows that differ need masks between all who send them, and a server that lies could choose neighbours
    sparse = options.sparse and server.layout.whole and server.pinned is None
    plan = graph.plan(len(clients), options.corrupted, options.dropout, server.pinned is not None, sparse)
    server.plan = plan
    if plan.complete:
        server.neighbours = graph.everybody(clients)
    else:
        server.neighbours = graph.ring(clients, plan.neighbours, server.shuffle)
    records = {client: advert.record() for client, advert in server.adverts.items()}
    said = (VERSION, server.session, plan.threshold, len(clients))
    return {
        client: pack(Neighbourhood(*said, b"".join(records[other] for other in others), server.everybody))
        for client, others in server.neighbours.items()
    }
