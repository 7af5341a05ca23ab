"""Stage 4, where identities are pinned: everybody signs the survivors, so that a server can't name others to some.

After: Bonawitz et al. 2017, Figure 4, Round 3 (the consistency check)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrecplus.parts.channel._summing import too_few
from fedrecplus.parts.channel.secure import keys
from fedrecplus.parts.channel.secure.graph import fewest_of
from fedrecplus.parts.channel.secure.messages import (
    SIGNATURE_BYTES,
    VERSION,
    Consent,
    Consents,
    Refused,
    Survivors,
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


def answer(client: SecureClient, survivors: bytes) -> bytes:
    """A signature on the survivors that the server names."""
    if client.identity is None:
        raise Refused("without pinned identities there is no consistency round")
    client.comes_after("mask", "consent")
    checked_survivors(client, survivors)
    client.once("consent", survivors)
    client.state.survivors = survivors
    signature = keys.sign(client.identity, b"survivors", keys.signed_survivors(survivors, client.near))
    return pack(Consent(VERSION, client.state.session, client.sender, signature))


def checked_survivors(client: SecureClient, data: bytes) -> set[int]:
    """The survivors among its neighbours, and itself, if they are such that a share can be given away."""
    state = client.state
    message = unpack(Survivors, data, state.session)
    alive, needed = set(from_bits(message.alive, client.near)), client.threshold
    if state.number not in alive:
        raise Refused("the server counts this client among those that dropped out")
    count = _counted(client, alive, message.count)
    if count < max(state.least_cohort, len(alive)):
        raise Refused(f"{count} survivors, and at least {state.least_cohort} are asked for")
    if count < fewest_of(state.honest, client.cohort):
        raise Refused(f"{count} of {client.cohort} survived: less noise than {state.honest:g} would add")
    if len(alive) - 1 < needed:
        raise Refused(f"{len(alive) - 1} neighbours survived, and {needed} are needed")
    _check_senders(client, alive)
    return alive


def _counted(client: SecureClient, alive: set[int], said: int) -> int:
    """How many survived: counted where everybody is a neighbour, and the server's word in a sparse graph.

    Who is called alive and sent nothing has masks with the others in the sum, which then tells nothing. Where
    identities are pinned everybody is a neighbour, and signs the names. In a sparse graph nobody can count the rest.
    """
    return len(alive) if len(client.near) == client.cohort else said


def _check_senders(client: SecureClient, alive: set[int]) -> None:
    """Where rows differ, refuse if somebody's leaving has made one of this client's rows nearly its own."""
    if client.rows is None:
        return
    before, after = client.senders()[client.rows], client.senders(alive)[client.rows]
    if too_few(before, after, client.state.fewest).any():
        raise Refused(f"fewer than {client.state.fewest} survivors span one of this client's rows")


def check_consents(client: SecureClient, survivors: bytes, consents: bytes, alive: set[int]) -> None:
    """Refuse to go on unless enough neighbours have signed the very same survivors."""
    if survivors != client.state.survivors:
        raise Refused("other survivors than this client has signed")
    message = unpack(Consents, consents, client.state.session)
    signers = from_bits(message.present, list(client.neighbours()))
    signed = keys.signed_survivors(survivors, client.near)  # everybody is a neighbour, so theirs are the same
    for other, signature in zip(signers, cut(message.signatures, len(signers), SIGNATURE_BYTES), strict=True):
        if client.pinned is None or other not in alive:
            raise Refused(f"client {other} has no say in this")
        keys.verify(client.pinned[other], signature, b"survivors", signed, other)
    if len(signers) < client.threshold:
        raise Refused(f"{len(signers)} neighbours signed these survivors, and {client.threshold} are needed")


def take(server: SecureServer, sender: int, data: bytes) -> None:
    """A survivor's signature."""
    message = sent_by(unpack(Consent, data, server.session), sender)
    assert server.pinned is not None
    signed = keys.signed_survivors(server.survivor_messages[sender], (sender, *server.neighbours[sender]))
    keys.verify(server.pinned[sender], message.signature, b"survivors", signed, sender)
    server.consents[sender] = message.signature


def close(server: SecureServer) -> dict[int, bytes]:
    """To each who signed, its neighbours' signatures."""
    messages = {}
    for client in server.consents:
        near = server.neighbours[client]
        signed = [server.consents[other] for other in near if other in server.consents]
        server.need(len(signed), server.threshold, f"of the neighbours of client {client} signed the survivors")
        present = to_bits(other in server.consents for other in near)
        messages[client] = pack(Consents(VERSION, server.session, present, b"".join(signed)))
    return messages
