"""A client's half of a secure sum: five stages, each answered once.

No input or output happens here, only bytes: the caller carries messages to the server and back. Everything secret comes
from one random root, so a state is small, and the same call gives the same answer again. A deployed node writes
``to_bytes`` to its private store *before* it sends a stage's answer, and can go on after a restart with ``of_bytes``.

After: Bonawitz et al. 2017, Figure 4, with the neighbours of Bell et al. 2020
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from fedrecplus.parts.channel._ring import Items, RingLayout, RingVector
from fedrecplus.parts.channel._summing import too_few
from fedrecplus.parts.channel.secure import keys, shamir
from fedrecplus.parts.channel.secure.client_state import ClientState, RandomBytes, Secrets, checked_neighbours
from fedrecplus.parts.channel.secure.graph import fewest_of
from fedrecplus.parts.channel.secure.masks import add_mask, shared_rows
from fedrecplus.parts.channel.secure.messages import (
    KEY_BYTES,
    SIGNATURE_BYTES,
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
    advertisements,
    cut,
    from_bits,
    pack,
    to_bytes,
    unpack,
)

STAGES = ("advertise", "share", "mask", "consent", "reveal")
SEALED_BYTES = 2 * shamir.SHARE_BYTES + 16
"""two shares and an authentication tag"""


class SecureClient:
    """One client in one secure sum."""

    def __init__(
        self,
        number: int,
        session: bytes,
        layout: RingLayout,
        rows: Items | None = None,
        least_cohort: int = 3,
        fewest: int = 1,
        identity: Ed25519PrivateKey | None = None,
        pinned: Mapping[int, bytes] | None = None,
        random_bytes: RandomBytes = os.urandom,
        honest: float = 0.0,
    ) -> None:
        """A client with fresh secrets.

        It refuses a cohort smaller than ``least_cohort``, and where rows differ, to help unmask a row of its own that
        fewer than ``fewest`` survivors span. Where devices add noise, it refuses to unmask less than the share
        ``honest`` of the cohort, which the noise is made for. ``identity`` signs what it sends, and ``pinned`` are the
        public identities of everybody (Ed25519, raw), which come from outside the server; both or none.
        ``random_bytes`` is the operating system's except in simulation.
        """
        if (identity is None) != (pinned is None):
            raise ValueError("identities are pinned for signing and for checking, or not at all")
        bits = layout.to_bits(rows)
        state = ClientState(
            number,
            session,
            layout,
            bits,
            least_cohort,
            fewest,
            pinned is not None,
            random_bytes(KEY_BYTES),
            honest=honest,
        )
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
        self.layout, self.secrets = state.layout, Secrets(state.root, state.session)
        self.rows = self.layout.from_bits(state.rows)
        self._agreed: dict[int, bytes] = {}
        self._shares: dict[int, bytes] = {}
        self._adverts: dict[int, Advertisement] | None = None

    @property
    def rounding_key(self) -> int:
        """A secret to draw by where numbers are rounded by chance: the same vector again after a restart."""
        return int.from_bytes(self.secrets.of(b"rounding")[:8], "big")

    def noise_words(self) -> Callable[[int], NDArray[np.uint64]]:
        """Uniform words for this sum's noise, from the beginning: the same noise after a restart.

        ChaCha20, keyed from a root of the operating system: a cryptographic generator, and no other sum has its words.
        """
        stream = self.secrets.drawing(b"noise")
        return lambda size: np.frombuffer(stream(8 * size), dtype="<u8")

    # Stage 1

    def advertise(self) -> bytes:
        """Fresh public keys, signed where identities are pinned."""
        self._once("advertise", b"")
        state = self.state
        cipher, mask = (
            keys.public_key(self.secrets.private(b"cipher key")),
            keys.public_key(self.secrets.private(b"mask key")),
        )
        signature = b""
        if self.identity is not None:
            content = keys.signed_keys(state.session, state.number, cipher, mask, state.rows)
            signature = keys.sign(self.identity, b"advertise", content)
        return pack(Advertisement(VERSION, state.session, self._sender, cipher, mask, state.rows, signature))

    # Stage 2

    def share(self, neighbourhood: bytes) -> bytes:
        """A share of the mask key and one of the self-mask seed for every neighbour, encrypted to it."""
        self._after("advertise", "share")
        message = unpack(Neighbourhood, neighbourhood, self.state.session)
        adverts = checked_neighbours(message, self.state, self.secrets, self.pinned)
        self._once("share", neighbourhood)
        self.state.neighbourhood, self._adverts = neighbourhood, adverts
        draw = self.secrets.drawing(b"coefficients")
        count = len(adverts)
        of_key = shamir.split(self.secrets.of(b"mask key"), count, message.threshold, draw)
        of_seed = shamir.split(self.secrets.of(b"self mask"), count, message.threshold, draw)
        sealed = []
        for place, other in enumerate(adverts):
            header = keys.pair(self.state.session, self.state.number, other)
            key = keys.derive(self._agree(other), b"shares", header)
            sealed.append(keys.seal(key, of_key[place] + of_seed[place], header))
        commitment = keys.commit(self.state.session, self.secrets.of(b"self mask"))
        return pack(SealedShares(VERSION, self.state.session, self._sender, commitment, b"".join(sealed)))

    # Stage 3

    @property
    def threshold(self) -> int:
        """Shares that restore a secret."""
        return unpack(Neighbourhood, self.state.neighbourhood, self.state.session).threshold

    @property
    def cohort(self) -> int:
        """Clients that advertised keys, this one included, as the server says."""
        return unpack(Neighbourhood, self.state.neighbourhood, self.state.session).cohort

    def senders(self, among: Container[int] | None = None) -> Items:
        """Of every row, how many clients span it, this one included. Where rows differ, everybody is a neighbour."""
        counts = np.zeros(self.layout.items, dtype=np.int64)
        others = [a.rows for other, a in self._neighbours().items() if among is None or other in among]
        for rows in (self.rows, *map(self.layout.from_bits, others)):
            counts[slice(None) if rows is None else rows] += 1
        return counts

    def mask(self, inbox: bytes, vector: RingVector, context: bytes = b"") -> bytes:
        """The vector plus its self mask and a mask with each neighbour that has shared its secrets.

        ``context`` is what the vector was made by and the server told only now: masks cancel between those alone who
        were told the same.
        """
        self._after("share", "mask")
        message = unpack(Inbox, inbox, self.state.session)
        plain = self._opened(message)
        if len(plain) < self.threshold:
            raise Refused(f"{len(plain)} neighbours have shared their secrets, and {self.threshold} are needed")
        if self.layout.to_bits(vector.rows) != self.state.rows:
            raise Refused("the vector spans other rows than were advertised")
        self._once("mask", inbox + vector.to_bytes() + context)
        self.state.inbox, self._shares = inbox, plain
        masked = RingVector(vector.rows, vector.moves.copy(), vector.weights.copy())
        add_mask(masked, keys.mask_key(self.secrets.of(b"self mask"), self.state.session), self.layout, None)
        private = self.secrets.private(b"mask key")
        for other, advert in self._neighbours().items():
            if other in plain:
                shared = shared_rows(self.rows, self.layout.from_bits(advert.rows))
                key = keys.pair_key(private, advert.mask_key, self.state.session, self.state.number, other, context)
                add_mask(masked, key, self.layout, shared, minus=self.state.number > other)
        return pack(MaskedVector(VERSION, self.state.session, self._sender, masked.to_bytes()))

    # Stage 4, where identities are pinned

    def consent(self, survivors: bytes) -> bytes:
        """A signature on the survivors that the server names, so that it can't name others to somebody else."""
        if self.identity is None:
            raise Refused("without pinned identities there is no consistency round")
        self._after("mask", "consent")
        self._survivors(survivors)
        self._once("consent", survivors)
        self.state.survivors = survivors
        signature = keys.sign(self.identity, b"survivors", keys.signed_survivors(survivors, self._near))
        return pack(Consent(VERSION, self.state.session, self._sender, signature))

    # Stage 5

    def reveal(self, survivors: bytes, consents: bytes = b"") -> bytes:
        """Of each neighbour one share: of its seed if its vector arrived, of its mask key if not. Never both."""
        self._after("mask", "reveal")
        alive = self._survivors(survivors)
        if self.identity is not None:
            self._check_consents(survivors, consents, alive)
        plain = self._shares or self._opened(unpack(Inbox, self.state.inbox, self.state.session))
        self._once("reveal", survivors)
        size = shamir.SHARE_BYTES
        shares = (both[size:] if other in alive else both[:size] for other, both in plain.items())
        return pack(Reveal(VERSION, self.state.session, self._sender, b"".join(shares)))

    def _survivors(self, data: bytes) -> set[int]:
        """The survivors among its neighbours, and itself, if they are such that a share can be given away."""
        message = unpack(Survivors, data, self.state.session)
        alive, needed = set(from_bits(message.alive, self._near)), self.threshold
        if self.state.number not in alive:
            raise Refused("the server counts this client among those that dropped out")
        if message.count < max(self.state.least_cohort, len(alive)):
            raise Refused(f"{message.count} survivors, and at least {self.state.least_cohort} are asked for")
        if message.count < fewest_of(self.state.honest, self.cohort):
            raise Refused(f"{message.count} of {self.cohort} survived: less noise than {self.state.honest:g} would add")
        if len(alive) - 1 < needed:
            raise Refused(f"{len(alive) - 1} neighbours survived, and {needed} are needed")
        self._check_senders(alive)
        return alive

    def _check_senders(self, alive: set[int]) -> None:
        """Where rows differ, refuse if somebody's leaving has made one of this client's rows nearly its own."""
        if self.rows is None:
            return
        before, after = self.senders()[self.rows], self.senders(alive)[self.rows]
        if too_few(before, after, self.state.fewest).any():
            raise Refused(f"fewer than {self.state.fewest} survivors span one of this client's rows")

    def _check_consents(self, survivors: bytes, consents: bytes, alive: set[int]) -> None:
        """Enough neighbours have signed the very same survivors."""
        if survivors != self.state.survivors:
            raise Refused("other survivors than this client has signed")
        message = unpack(Consents, consents, self.state.session)
        signers = from_bits(message.present, list(self._neighbours()))
        signed = keys.signed_survivors(survivors, self._near)  # everybody is a neighbour, so theirs are the same
        for other, signature in zip(signers, cut(message.signatures, len(signers), SIGNATURE_BYTES), strict=True):
            if self.pinned is None or other not in alive:
                raise Refused(f"client {other} has no say in this")
            keys.verify(self.pinned[other], signature, b"survivors", signed, other)
        if len(signers) < self.threshold:
            raise Refused(f"{len(signers)} neighbours signed these survivors, and {self.threshold} are needed")

    def _opened(self, message: Inbox) -> dict[int, bytes]:
        """The shares that neighbours sealed for this client."""
        senders, plain = from_bits(message.present, list(self._neighbours())), {}
        for sender, sealed in zip(senders, cut(message.sealed, len(senders), SEALED_BYTES), strict=True):
            header = keys.pair(self.state.session, sender, self.state.number)
            plain[sender] = keys.unseal(keys.derive(self._agree(sender), b"shares", header), sealed, header, sender)
        return plain

    def _neighbours(self) -> dict[int, Advertisement]:
        if self._adverts is None:
            message = unpack(Neighbourhood, self.state.neighbourhood, self.state.session)
            self._adverts = advertisements(message, len(self.state.rows), self.state.pinned)
        return self._adverts

    @property
    def _near(self) -> list[int]:
        """Itself and its neighbours, ascending."""
        return sorted([self.state.number, *self._neighbours()])

    def _agree(self, other: int) -> bytes:
        """The secret with a neighbour that shares are encrypted under."""
        if other not in self._agreed:
            theirs = self._neighbours()[other].cipher_key
            self._agreed[other] = keys.agree(self.secrets.private(b"cipher key"), theirs, b"cipher", self.state.session)
        return self._agreed[other]

    @property
    def _sender(self) -> bytes:
        return to_bytes(self.state.number)

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
