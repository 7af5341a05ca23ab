"""Stage 3: everybody's vector under its masks; the server adds them up and names the survivors.

After: Bonawitz et al. 2017, Figure 4, Round 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fedrecplus.parts.channel._ring import RingVector, from_bytes
from fedrecplus.parts.channel._summing import too_few
from fedrecplus.parts.channel.secure import graph, keys
from fedrecplus.parts.channel.secure.masks import add_mask, shared_rows
from fedrecplus.parts.channel.secure.messages import (
    VERSION,
    Complaint,
    MaskedVector,
    Neighbourhood,
    Refused,
    Survivors,
    from_bits,
    pack,
    to_bits,
    unpack,
)
from fedrecplus.parts.channel.secure.server_state import sent_by
from fedrecplus.parts.channel.secure.stages import share

if TYPE_CHECKING:
    from fedrecplus.parts.channel.secure.client import SecureClient
    from fedrecplus.parts.channel.secure.server import SecureServer


def answer(client: SecureClient, inbox: bytes, vector: RingVector, context: bytes) -> bytes:
    """The vector plus its self mask and a mask with each neighbour that has shared its secrets."""
    client.comes_after("share", "mask")
    state, layout = client.state, client.layout
    plain, garbled = share.opened(client, inbox)
    if garbled:
        client.once("mask", inbox)
        dealers = to_bits(other in garbled for other in client.neighbours())
        return pack(Complaint(VERSION, state.session, client.sender, dealers))
    if len(plain) < client.threshold:
        raise Refused(f"{len(plain)} neighbours have shared their secrets, and {client.threshold} are needed")
    if layout.to_bits(vector.rows) != state.rows:
        raise Refused("the vector spans other rows than were advertised")
    context += keys.cohort_context(unpack(Neighbourhood, state.neighbourhood, state.session).everybody)
    client.once("mask", inbox + vector.to_bytes() + context)
    state.inbox, client.shares = inbox, plain
    masked = RingVector(vector.rows, vector.updates.copy(), vector.weights.copy())
    add_mask(masked, keys.mask_key(client.secrets.of(b"self mask"), state.session), layout, None)
    private = client.secrets.private(b"mask key")
    for other, advert in client.neighbours().items():
        if other in plain:
            shared = shared_rows(client.rows, layout.from_bits(advert.rows))
            key = keys.pair_key(private, advert.mask_key, state.session, state.number, other, context)
            add_mask(masked, key, layout, shared, minus=state.number > other)
    return pack(MaskedVector(VERSION, state.session, client.sender, masked.to_bytes()))


def take(server: SecureServer, sender: int, data: bytes) -> None:
    """A client's masked vector goes into the sum at once; nobody keeps it."""
    if (complaint := _complaint(server, data)) is not None:
        near = server.neighbours[sender]
        server.complaints[sender] = from_bits(sent_by(complaint, sender).dealers, near)
        return
    message = sent_by(unpack(MaskedVector, data, server.session), sender)
    rows = server.layout.from_bits(server.adverts[sender].rows)
    try:
        vector = from_bytes(message.data, server.layout, rows)
    except ValueError as error:
        raise Refused(f"client {sender}: {error}") from None
    server.total.add(vector)
    server.vectors.add(sender)


def close(server: SecureServer) -> dict[int, bytes]:
    """To each survivor, which of its neighbours survived; too few anywhere end the sum before anything is unmasked."""
    if server.complaints:
        server.blamed |= blamed_by(server.complaints)
        raise server.aborted(f"shares don't open; who deals or complains falsely: {sorted(server.blamed)}")
    least = max(server.options.least_cohort, graph.fewest_of(server.options.honest, server.cohort))
    server.need(len(server.vectors), least, "sent their vectors")
    willing = _willing(server)
    for client in server.survivors:
        left = sum(other in server.vectors for other in server.neighbours[client])
        server.need(left, server.threshold, f"are left of the neighbours of client {client}")
        left = sum(other in willing for other in server.neighbours[client])
        server.need(left, server.threshold, f"would help to unmask client {client}: rows have too few senders")
    count = len(server.vectors)
    for client in server.survivors:
        near = sorted((client, *server.neighbours[client]))
        alive = to_bits(other in server.vectors for other in near)
        server.survivor_messages[client] = pack(Survivors(VERSION, server.session, count, alive))
    return dict(server.survivor_messages)


def _complaint(server: SecureServer, data: bytes) -> Complaint | None:
    try:
        return unpack(Complaint, data, server.session)
    except Refused:
        return None


def blamed_by(complaints: Mapping[int, Iterable[int]]) -> dict[int, str]:
    """Who to leave out so that nobody complains of anybody: whoever is in most complaints first, and of two both.

    Whether a dealer or a complainer lies can't be told without opening what others dealt. One liar that garbles the
    shares of many, or complains of many, stands alone against them; where it is one against one, both are blamed.

    >>> sorted(blamed_by({2: [7], 3: [7], 4: [7]})), sorted(blamed_by({2: [5]}))
    ([7], [2, 5])
    """
    pairs = {frozenset((client, dealer)) for client, dealers in complaints.items() for dealer in dealers}
    blamed: dict[int, str] = {}
    while pairs:
        counts = Counter(client for pair in pairs for client in pair)
        most = max(counts.values())
        for client in [one for one, count in counts.items() if count == most]:
            blamed[client] = "shares that it dealt don't open, or its complaint of others is false"
        pairs = {pair for pair in pairs if pair.isdisjoint(blamed)}
    return blamed


def _willing(server: SecureServer) -> set[int]:
    """Survivors that will unmask: all but those of whom a row has too few senders left.

    Asked before anybody is: a sum that some began to unmask can't be begun anew.
    """
    before, after = server.senders(), server.senders(server.vectors)
    if before is None or after is None:
        return server.vectors
    few = too_few(before, after, server.options.fewest)
    rows = {client: server.layout.from_bits(server.adverts[client].rows) for client in server.vectors}
    return {client for client, each in rows.items() if not few[each].any()}
