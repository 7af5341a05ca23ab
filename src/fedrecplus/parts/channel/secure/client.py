"""A client's half of a secure sum: five stages, each answered once.

No input or output happens here, only bytes: the caller carries messages to the server and back. Everything secret comes
from one random root, so a state is small, and the same call gives the same answer again. A deployed node writes
``to_bytes`` to its private store *before* it sends a stage's answer, and can go on after a restart with ``of_bytes``.

After: Bonawitz et al. 2017, Figure 4, with the neighbours of Bell et al. 2020
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from fedrecplus.parts.channel._ring import Items, Layout, RingVector
from fedrecplus.parts.channel.secure import keys, shamir
from fedrecplus.parts.channel.secure.graph import least_threshold
from fedrecplus.parts.channel.secure.masks import add_mask, shared_rows
from fedrecplus.parts.channel.secure.messages import (
    KEY_BYTES,
    VERSION,
    Advertisement,
    Consent,
    Consents,
    Inbox,
    MaskedVector,
    Neighbourhood,
    Refused,
    Reveal,
    SealedShares,
    Survivors,
    pack,
    unpack,
)

RandomBytes = Callable[[int], bytes]
STAGES = ("advertise", "share", "mask", "consent", "reveal")
_SHARES = 2 * shamir.SHARE_BYTES


class ClientState(msgspec.Struct):
    """All that a client keeps between stages. As secret as its ratings."""

    number: int
    session: bytes
    layout: tuple[int, int, int, int, int]
    rows: bytes
    """which blocks its vector spans, as bits"""
    least_cohort: int
    pinned: bool
    root: bytes
    done: dict[str, bytes] = msgspec.field(default_factory=dict)
    """stage → digest of what it was asked"""
    neighbourhood: bytes = b""
    inbox: bytes = b""
    survivors: bytes = b""


class SecureClient:
    """One client in one secure sum."""

    def __init__(
        self,
        number: int,
        session: bytes,
        layout: Layout,
        rows: Items | None = None,
        least_cohort: int = 3,
        identity: Ed25519PrivateKey | None = None,
        pinned: Mapping[int, bytes] | None = None,
        random_bytes: RandomBytes = os.urandom,
    ) -> None:
        """A client with fresh secrets.

        ``identity`` signs what it sends, and ``pinned`` are the public identities of everybody (Ed25519, raw), which
        come from outside the server; both or none. ``random_bytes`` is the operating system's except in simulation.
        """
        if (identity is None) != (pinned is None):
            raise ValueError("identities are pinned for signing and for checking, or not at all")
        shape = (layout.items, layout.columns, layout.bits, layout.statistic_size, layout.block)
        bits = layout.to_bits(rows)
        state = ClientState(number, session, shape, bits, least_cohort, pinned is not None, random_bytes(KEY_BYTES))
        self._set(state, identity, pinned)

    @classmethod
    def of_bytes(
        cls, data: bytes, identity: Ed25519PrivateKey | None = None, pinned: Mapping[int, bytes] | None = None
    ) -> SecureClient:
        """The client whose state was kept."""
        state = msgspec.msgpack.decode(data, type=ClientState)
        if state.pinned != (pinned is not None):
            raise Refused("the sum began with pinned identities, or without, and can't go on otherwise")
        client = cls.__new__(cls)
        client._set(state, identity, pinned)
        return client

    def to_bytes(self) -> bytes:
        """The state to keep between stages, in a place that nobody else can read."""
        return msgspec.msgpack.encode(self.state)

    def _set(self, state: ClientState, identity: Any, pinned: Any) -> None:
        self.state, self.identity, self.pinned = state, identity, pinned
        self.layout = Layout(*state.layout)
        self.rows = self.layout.from_bits(state.rows)
        self._agreed: dict[int, bytes] = {}
        self._adverts: dict[int, Advertisement] | None = None

    @property
    def sent_vector(self) -> bool:
        """Whether its masked vector has left: it must not be in another sum of the same round (differencing)."""
        return "mask" in self.state.done

    # Stage 1

    def advertise(self) -> bytes:
        """Fresh public keys, signed where identities are pinned."""
        self._once("advertise", b"")
        state = self.state
        cipher, mask = keys.public_key(self._secret(b"cipher key")), keys.public_key(self._secret(b"mask key"))
        signature = b""
        if self.identity is not None:
            content = signed_keys(state.session, state.number, cipher, mask, state.rows)
            signature = keys.sign(self.identity, b"advertise", content)
        return pack(Advertisement(VERSION, state.session, state.number, cipher, mask, state.rows, signature))

    # Stage 2

    def share(self, neighbourhood: bytes) -> bytes:
        """A share of the mask key and one of the self-mask seed for every neighbour, encrypted to it."""
        self._after("advertise", "share")
        message = unpack(Neighbourhood, neighbourhood, self.state.session)
        adverts = self._checked(message)
        self._once("share", neighbourhood)
        self.state.neighbourhood, self._adverts = neighbourhood, adverts
        draw = self._drawing(b"coefficients")
        count = len(adverts)
        of_key = shamir.split(self._secret(b"mask key"), count, message.threshold, draw)
        of_seed = shamir.split(self._secret(b"self mask"), count, message.threshold, draw)
        sealed = []
        for place, other in enumerate(adverts):
            header = keys.pair(self.state.session, self.state.number, other)
            key = keys.derive(self._agree(other), b"shares", header)
            sealed.append((other, keys.seal(key, of_key[place] + of_seed[place], header)))
        commitment = commit(self.state.session, self._secret(b"self mask"))
        return pack(SealedShares(VERSION, self.state.session, self.state.number, commitment, tuple(sealed)))

    # Stage 3

    @property
    def cohort(self) -> int:
        """How many clients advertised keys: what the encoding's range is made for."""
        return unpack(Neighbourhood, self.state.neighbourhood, self.state.session).cohort

    def senders(self) -> Items:
        """Of every row, how many of the cohort span it, this client included. Everybody is a neighbour here."""
        counts = np.zeros(self.layout.items, dtype=np.int64)
        for rows in (self.rows, *(self.layout.from_bits(advert.rows) for advert in self._neighbours().values())):
            counts[slice(None) if rows is None else rows] += 1
        return counts

    def mask(self, inbox: bytes, vector: RingVector) -> bytes:
        """The vector plus its self mask and a mask with each neighbour that has shared its secrets."""
        self._after("share", "mask")
        message = unpack(Inbox, inbox, self.state.session)
        plain = self._opened(message)
        needed = unpack(Neighbourhood, self.state.neighbourhood, self.state.session).threshold
        if len(plain) < needed:
            raise Refused(f"{len(plain)} neighbours have shared their secrets, and {needed} are needed")
        if self.layout.to_bits(vector.rows) != self.state.rows:
            raise Refused("the vector spans other rows than were advertised")
        self._once("mask", inbox + vector.to_bytes())
        self.state.inbox = inbox
        masked = RingVector(vector.rows, vector.moves.copy(), vector.weights.copy())
        add_mask(masked, mask_key(self._secret(b"self mask"), self.state.session), self.layout, None)
        secret = self._secret(b"mask key")
        for other, advert in self._neighbours().items():
            if other in plain:
                shared = shared_rows(self.rows, self.layout.from_bits(advert.rows))
                key = pair_key(secret, advert.mask_key, self.state.session, self.state.number, other)
                add_mask(masked, key, self.layout, shared, minus=self.state.number > other)
        return pack(MaskedVector(VERSION, self.state.session, self.state.number, masked.to_bytes()))

    # Stage 4, where identities are pinned

    def consent(self, survivors: bytes) -> bytes:
        """A signature on the survivors that the server names, so that it can't name others to somebody else."""
        if self.identity is None:
            raise Refused("without pinned identities there is no consistency round")
        self._after("mask", "consent")
        self._survivors(survivors)
        self._once("consent", survivors)
        self.state.survivors = survivors
        signature = keys.sign(self.identity, b"survivors", survivors)
        return pack(Consent(VERSION, self.state.session, self.state.number, signature))

    # Stage 5

    def reveal(self, survivors: bytes, consents: bytes = b"") -> bytes:
        """Of each neighbour one share: of its seed if its vector arrived, of its mask key if not. Never both."""
        self._after("mask", "reveal")
        alive = set(self._survivors(survivors).clients)
        if self.identity is not None:
            self._check_consents(survivors, consents, alive)
        plain = self._opened(unpack(Inbox, self.state.inbox, self.state.session))
        self._once("reveal", survivors)
        cut = shamir.SHARE_BYTES
        seeds = tuple((other, shares[cut:]) for other, shares in plain.items() if other in alive)
        of_keys = tuple((other, shares[:cut]) for other, shares in plain.items() if other not in alive)
        return pack(Reveal(VERSION, self.state.session, self.state.number, seeds, of_keys))

    def _checked(self, message: Neighbourhood) -> dict[int, Advertisement]:
        """The neighbours' advertisements, if this is a neighbourhood to share secrets in."""
        adverts = _read_adverts(message, self.state.session)
        count, least = len(adverts), least_threshold(len(adverts), self.state.pinned)
        if self.state.number in adverts:
            raise Refused("a client is no neighbour of itself")
        if message.cohort < self.state.least_cohort:
            raise Refused(f"a cohort of {message.cohort}, and at least {self.state.least_cohort} are asked for")
        if not count < message.cohort or not least <= message.threshold <= count:
            raise Refused(f"a threshold of {message.threshold} of {count} neighbours, in a cohort of {message.cohort}")
        if count != message.cohort - 1 and not self.layout.whole:
            raise Refused("where rows differ, everybody must be a neighbour: a row needs masks with all who send it")
        if count != message.cohort - 1 and self.state.pinned:
            raise Refused("with pinned identities everybody must be a neighbour: a lying server could choose them")
        own = {keys.public_key(self._secret(b"cipher key")), keys.public_key(self._secret(b"mask key"))}
        seen = [key for advert in adverts.values() for key in (advert.cipher_key, advert.mask_key)]
        if len({*own, *seen}) != 2 + len(seen):
            raise Refused("two of the neighbourhood have the same key")
        for advert in adverts.values():
            self._check_rows(advert)
            if self.pinned is not None:
                check_signature(advert, self.pinned)
        return adverts

    def _check_rows(self, advert: Advertisement) -> None:
        try:
            self.layout.from_bits(advert.rows)
        except ValueError as error:
            raise Refused(f"client {advert.sender}: {error}") from None

    def _survivors(self, data: bytes) -> Survivors:
        """The survivors, if they are such that a share can be given away."""
        message = unpack(Survivors, data, self.state.session)
        alive, shared = set(message.clients), self._neighbours()
        if self.state.number not in alive:
            raise Refused("the server counts this client among those that dropped out")
        if message.count < self.state.least_cohort:
            raise Refused(f"{message.count} survivors, and at least {self.state.least_cohort} are asked for")
        needed = unpack(Neighbourhood, self.state.neighbourhood, self.state.session).threshold
        if len(alive & set(shared)) < needed:
            raise Refused(f"{len(alive & set(shared))} neighbours survived, and {needed} are needed")
        return message

    def _check_consents(self, survivors: bytes, consents: bytes, alive: set[int]) -> None:
        """Enough neighbours have signed the very same survivors."""
        if survivors != self.state.survivors:
            raise Refused("other survivors than this client has signed")
        message = unpack(Consents, consents, self.state.session)
        signers = dict(message.consents)
        for other, signature in signers.items():
            if self.pinned is None or other not in self.pinned or other not in self._neighbours() or other not in alive:
                raise Refused(f"client {other} has no say in this")
            keys.verify(self.pinned[other], signature, b"survivors", survivors, other)
        needed = unpack(Neighbourhood, self.state.neighbourhood, self.state.session).threshold
        if len(signers) < needed:
            raise Refused(f"{len(signers)} neighbours signed these survivors, and {needed} are needed")

    def _opened(self, message: Inbox) -> dict[int, bytes]:
        """The shares that neighbours sealed for this client."""
        adverts, plain = self._neighbours(), {}
        for sender, sealed in message.sealed:
            if sender not in adverts or sender in plain:
                raise Refused(f"client {sender} is no neighbour, or sent twice")
            header = keys.pair(self.state.session, sender, self.state.number)
            key = keys.derive(self._agree(sender), b"shares", header)
            plain[sender] = keys.unseal(key, sealed, header, sender)
            if len(plain[sender]) != _SHARES:
                raise Refused(f"client {sender} sealed something else than two shares")
        return plain

    def _neighbours(self) -> dict[int, Advertisement]:
        if self._adverts is None:
            message = unpack(Neighbourhood, self.state.neighbourhood, self.state.session)
            self._adverts = _read_adverts(message, self.state.session)
        return self._adverts

    def _agree(self, other: int) -> bytes:
        """The secret with a neighbour that shares are encrypted under."""
        if other not in self._agreed:
            theirs = self._neighbours()[other].cipher_key
            self._agreed[other] = keys.agree(self._secret(b"cipher key"), theirs, b"cipher", self.state.session)
        return self._agreed[other]

    def _secret(self, name: bytes) -> bytes:
        return keys.derive(self.state.root, name, self.state.session)

    def _drawing(self, name: bytes) -> RandomBytes:
        """Random bytes that follow from the root: a stream of ChaCha20."""
        encryptor = Cipher(algorithms.ChaCha20(self._secret(name), bytes(16)), None).encryptor()
        return lambda size: encryptor.update(bytes(size))

    def _after(self, before: str, stage: str) -> None:
        if before not in self.state.done:
            raise Refused(f"{stage} comes after {before}")
        later = STAGES[STAGES.index(stage) + 1 :]
        if stage not in self.state.done and any(each in self.state.done for each in later):
            raise Refused(f"it is too late to {stage}")

    def _once(self, stage: str, asked: bytes) -> None:
        """A stage is answered once; the same question gets the same answer, another one none."""
        digest = hashlib.sha256(asked).digest()
        if self.state.done.setdefault(stage, digest) != digest:
            raise Refused(f"this client has answered the stage {stage} of this sum already, to another message")


def pair_key(secret: bytes, other: bytes, session: bytes, one: int, two: int) -> bytes:
    """The key of the mask that two clients share."""
    return keys.agree(secret, other, b"pair mask", keys.pair(session, min(one, two), max(one, two)))


def mask_key(seed: bytes, session: bytes) -> bytes:
    """The key of a self mask."""
    return keys.derive(seed, b"self mask stream", session)


def commit(session: bytes, seed: bytes) -> bytes:
    """What a client says of its seed, so that wrong shares of it are noticed. The seed has 256 random bits."""
    return hashlib.sha256(b"fedrecplus secure sum 1 seed\0" + session + seed).digest()


def signed_keys(session: bytes, sender: int, cipher: bytes, mask: bytes, rows: bytes) -> bytes:
    """What an advertisement's signature is on."""
    return keys.pair(session, sender, len(rows)) + cipher + mask + rows


def check_signature(advert: Advertisement, pinned: Mapping[int, bytes]) -> None:
    """Refuse keys that the pinned identity has not signed."""
    if advert.sender not in pinned:
        raise Refused(f"client {advert.sender} has no pinned identity")
    content = signed_keys(advert.session, advert.sender, advert.cipher_key, advert.mask_key, advert.rows)
    keys.verify(pinned[advert.sender], advert.signature, b"advertise", content, advert.sender)


def _read_adverts(message: Neighbourhood, session: bytes) -> dict[int, Advertisement]:
    """Neighbour → what it advertised, ascending; none twice."""
    found = [unpack(Advertisement, each, session) for each in message.neighbours]
    adverts = {advert.sender: advert for advert in sorted(found, key=lambda advert: advert.sender)}
    if len(adverts) != len(found):
        raise Refused("a neighbour stands twice in the neighbourhood")
    if any(len(key) != KEY_BYTES for advert in found for key in (advert.cipher_key, advert.mask_key)):
        raise Refused("a public key of the wrong length")
    return adverts
