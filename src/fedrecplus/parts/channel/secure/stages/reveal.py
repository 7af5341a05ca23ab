"""Stage 5: shares of the survivors' seeds and of the others' mask keys; the server takes all masks out of the sum.

After: Bonawitz et al. 2017, Figure 4, Round 4 (unmasking)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fedrecplus.parts.channel.secure import keys, shamir
from fedrecplus.parts.channel.secure.masks import add_mask, shared_rows
from fedrecplus.parts.channel.secure.messages import VERSION, Reveal, cut, pack, unpack
from fedrecplus.parts.channel.secure.server_state import sent_by
from fedrecplus.parts.channel.secure.stages import consent, share

if TYPE_CHECKING:
    from fedrecplus.parts.channel.secure.client import SecureClient
    from fedrecplus.parts.channel.secure.server import SecureServer


def answer(client: SecureClient, survivors: bytes, consents: bytes) -> bytes:
    """Of each neighbour one share: of its seed if its vector arrived, of its mask key if not. Never both."""
    client.comes_after("mask", "reveal")
    alive = consent.checked_survivors(client, survivors)
    if client.identity is not None:
        consent.check_consents(client, survivors, consents, alive)
    plain = client.shares or share.opened(client, client.state.inbox)[0]
    client.once("reveal", survivors)
    size = shamir.SHARE_BYTES
    shares = (both[size:] if other in alive else both[:size] for other, both in plain.items())
    return pack(Reveal(VERSION, client.state.session, client.sender, b"".join(shares)))


def take(server: SecureServer, sender: int, data: bytes) -> None:
    """A survivor's shares of its neighbours' secrets."""
    message = sent_by(unpack(Reveal, data, server.session), sender)
    owners = [other for other in server.neighbours[sender] if other in server.shares]
    for owner, piece in zip(owners, cut(message.shares, len(owners), shamir.SHARE_BYTES), strict=True):
        kind = server.unmasking.seeds if owner in server.vectors else server.unmasking.keys
        kind.setdefault(owner, {})[sender] = piece


def close(server: SecureServer) -> dict[int, bytes]:
    """Take every mask out of the sum."""
    seeds = {client: _restored(server, client, server.unmasking.seeds, "seed") for client in server.survivors}
    gone = sorted(server.shares.keys() - server.vectors)
    lost = {
        client: _restored(server, client, server.unmasking.keys, "mask key")
        for client in gone
        if any(other in server.vectors for other in server.neighbours[client])
    }
    for client, seed in seeds.items():
        rows = server.layout.from_bits(server.adverts[client].rows)
        add_mask(server.total, keys.mask_key(seed, server.session), server.layout, rows, minus=True)
    for client, secret in lost.items():
        _remove_pairs(server, client, secret)
    return {}


def _remove_pairs(server: SecureServer, gone: int, secret: bytes) -> None:
    """Take out the masks that survivors share with a client that dropped out."""
    rows, private = server.layout.from_bits(server.adverts[gone].rows), keys.private_key(secret)
    for other in server.neighbours[gone]:
        if other in server.vectors:
            mask_key = server.adverts[other].mask_key
            key = keys.pair_key(private, mask_key, server.session, gone, other, server.pair_context)
            shared = shared_rows(rows, server.layout.from_bits(server.adverts[other].rows))
            add_mask(server.total, key, server.layout, shared, minus=other < gone)


def _restored(server: SecureServer, owner: int, shares: Mapping[int, Mapping[int, bytes]], name: str) -> bytes:
    """A secret from the shares that came back; wrong shares are found by what its owner said of it before."""
    places = {other: place for place, other in enumerate(server.neighbours[owner], 1)}
    points = {places[holder]: piece for holder, piece in shares.get(owner, {}).items()}
    server.need(len(points), server.threshold, f"gave a share of the {name} of client {owner}")
    advert, commitment = server.adverts[owner], server.commitments[owner]

    def right(secret: bytes) -> bool:
        if name == "seed":
            return keys.commit(server.session, secret) == commitment
        return keys.public_key(keys.private_key(secret)) == advert.mask_key

    secret, wrong = shamir.restore_checked(points, server.threshold, right)
    for place in wrong:
        server.blamed[server.neighbours[owner][place - 1]] = f"a wrong share of the {name} of client {owner}"
    if secret is None:
        server.blamed[owner] = f"it dealt shares of its {name} that restore nothing, or too many holders lie"
        raise server.aborted(f"the shares of the {name} of client {owner} restore nothing: too many are wrong")
    return secret
