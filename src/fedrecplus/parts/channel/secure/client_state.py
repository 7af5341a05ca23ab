"""What a client of a secure sum keeps between stages, the secrets that follow from it, and whom it shares them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from fedrecplus.parts.channel._groups import Grouping
from fedrecplus.parts.channel._ring import RingLayout
from fedrecplus.parts.channel.secure import keys
from fedrecplus.parts.channel.secure.graph import least_neighbours, least_threshold
from fedrecplus.parts.channel.secure.messages import (
    NUMBER_BYTES,
    Advertisement,
    Neighbourhood,
    Refused,
    advertisements,
    cut,
    to_number,
)

RandomBytes = Callable[[int], bytes]


class ClientState(msgspec.Struct):
    """All that a client keeps between stages. As secret as its ratings."""

    number: int
    session: bytes
    layout: RingLayout
    rows: bytes
    """which blocks its vector spans, as bits"""
    least_cohort: int
    fewest: int
    pinned: bool
    root: bytes
    done: dict[str, bytes] = msgspec.field(default_factory=dict)
    """stage → digest of what it was asked"""
    neighbourhood: bytes = b""
    inbox: bytes = b""
    survivors: bytes = b""
    honest: float = 0.0
    """share of the cohort whose vectors must be in the sum"""
    grouping: Grouping | None = None
    """where the cohort falls into groups with a sum each"""


class Secrets:
    """All secrets of one client in one sum: each follows from the root, under a name of its own."""

    def __init__(self, root: bytes, session: bytes) -> None:
        self._root, self._session = root, session
        self._privates: dict[bytes, X25519PrivateKey] = {}

    def of(self, name: bytes) -> bytes:
        """32 bytes."""
        return keys.derive(self._root, name, self._session)

    def private(self, name: bytes) -> X25519PrivateKey:
        """A private key."""
        if name not in self._privates:
            self._privates[name] = keys.private_key(self.of(name))
        return self._privates[name]

    def drawing(self, name: bytes) -> RandomBytes:
        """Random bytes that follow from the root: a stream of ChaCha20."""
        encryptor = Cipher(algorithms.ChaCha20(self.of(name), bytes(16)), None).encryptor()
        return lambda size: encryptor.update(bytes(size))


def checked_neighbours(
    message: Neighbourhood, state: ClientState, secrets: Secrets, pinned: Mapping[int, bytes] | None
) -> dict[int, Advertisement]:
    """The neighbours' advertisements, if this is a neighbourhood to share secrets in; ``Refused`` where not."""
    adverts = advertisements(message, len(state.rows), state.pinned)
    count, least = len(adverts), least_threshold(len(adverts), state.pinned)
    if state.number in adverts:
        raise Refused("a client is no neighbour of itself")
    if message.cohort < state.least_cohort:
        raise Refused(f"a cohort of {message.cohort}, and at least {state.least_cohort} are asked for")
    if not count < message.cohort or not least <= message.threshold <= count:
        raise Refused(f"a threshold of {message.threshold} of {count} neighbours, in a cohort of {message.cohort}")
    if count != message.cohort - 1 and not state.layout.whole:
        raise Refused("where rows differ, everybody must be a neighbour: a row needs masks with all who send it")
    if count != message.cohort - 1 and state.pinned:
        raise Refused("with pinned identities everybody must be a neighbour: a lying server could choose them")
    if count < least_neighbours(message.cohort):
        raise Refused(f"{count} neighbours in a cohort of {message.cohort}: a sum of so few could be unmasked apart")
    _check_group(message, adverts, state)
    own_keys = {keys.public_key(secrets.private(name)) for name in (b"cipher key", b"mask key")}
    seen = [key for advert in adverts.values() for key in (advert.cipher_key, advert.mask_key)]
    if len({*own_keys, *seen}) != 2 + len(seen):
        raise Refused("two of the neighbourhood have the same key")
    for advert in adverts.values():
        try:
            state.layout.from_bits(advert.rows)
        except ValueError as error:
            raise Refused(f"client {advert.number}: {error}") from None
        if pinned is not None:
            keys.check_signature(advert, pinned)
    return adverts


def _check_group(message: Neighbourhood, adverts: Mapping[int, Advertisement], state: ClientState) -> None:
    """Refuse another group than the one that follows from who is in the cohort."""
    if state.grouping is None:
        if message.everybody:
            raise Refused("a cohort in groups, where one sum of all was asked for")
        return
    pieces = cut(message.everybody, len(message.everybody) // NUMBER_BYTES, NUMBER_BYTES)
    everybody = [to_number(piece) for piece in pieces]
    if everybody != sorted(set(everybody)) or state.number not in everybody:
        raise Refused("a cohort without this client, or with somebody twice or out of order")
    group = state.grouping.group_of(state.number, everybody)
    if message.cohort != len(group) or not adverts.keys() < group:
        raise Refused("another group than the one that is drawn for this cohort")
