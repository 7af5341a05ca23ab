"""A client's half of a secure sum: five stages (``stages/``), each answered once.

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

from fedrecplus.arrays import Items
from fedrecplus.parts.channel._groups import Grouping
from fedrecplus.parts.channel._ring import RingLayout, RingVector
from fedrecplus.parts.channel.secure import keys
from fedrecplus.parts.channel.secure.client_state import ClientState, RandomBytes, Secrets
from fedrecplus.parts.channel.secure.messages import (
    KEY_BYTES,
    Advertisement,
    Neighbourhood,
    Refused,
    advertisements,
    to_bytes,
    unpack,
)
from fedrecplus.parts.channel.secure.stages import STAGES, advertise, consent, mask, reveal, share


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
        grouping: Grouping | None = None,
    ) -> None:
        """A client with fresh secrets.

        It refuses a cohort smaller than ``least_cohort``, and where rows differ, to help unmask a row of its own that
        fewer than ``fewest`` survivors span. Where devices add noise, it refuses to unmask less than the share
        ``honest`` of the cohort, which the noise is made for. ``identity`` signs what it sends, and ``pinned`` are the
        public identities of everybody (Ed25519, raw), which come from outside the server; both or none. With a
        ``grouping`` the sum is of the group that follows from who is in the cohort.
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
            grouping=grouping,
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
        self.agreed: dict[int, bytes] = {}
        self.shares: dict[int, bytes] = {}
        """neighbour → its shares for this client, since they were opened"""
        self.adverts: dict[int, Advertisement] | None = None

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

    def advertise(self) -> bytes:
        """Stage 1: fresh public keys."""
        return advertise.answer(self)

    def share(self, neighbourhood: bytes) -> bytes:
        """Stage 2: shares of two secrets for every neighbour, encrypted to it."""
        return share.answer(self, neighbourhood)

    def mask(self, inbox: bytes, vector: RingVector, context: bytes = b"") -> bytes:
        """Stage 3: the vector under its masks.

        ``context`` is what the vector was made by and the server told only now: masks cancel between those alone who
        were told the same.
        """
        return mask.answer(self, inbox, vector, context)

    def consent(self, survivors: bytes) -> bytes:
        """Stage 4, where identities are pinned: a signature on the survivors that the server names."""
        return consent.answer(self, survivors)

    def reveal(self, survivors: bytes, consents: bytes = b"") -> bytes:
        """Stage 5: of each neighbour one share, of its seed or of its mask key; never both."""
        return reveal.answer(self, survivors, consents)

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
        others = [a.rows for other, a in self.neighbours().items() if among is None or other in among]
        for rows in (self.rows, *map(self.layout.from_bits, others)):
            counts[slice(None) if rows is None else rows] += 1
        return counts

    def neighbours(self) -> dict[int, Advertisement]:
        """What its neighbours advertised."""
        if self.adverts is None:
            message = unpack(Neighbourhood, self.state.neighbourhood, self.state.session)
            self.adverts = advertisements(message, len(self.state.rows), self.state.pinned)
        return self.adverts

    @property
    def near(self) -> list[int]:
        """Itself and its neighbours, ascending."""
        return sorted([self.state.number, *self.neighbours()])

    @property
    def sender(self) -> bytes:
        """Its number, as messages carry it."""
        return to_bytes(self.state.number)

    def agree(self, other: int) -> bytes:
        """The secret with a neighbour that shares are encrypted under."""
        if other not in self.agreed:
            theirs = self.neighbours()[other].cipher_key
            self.agreed[other] = keys.agree(self.secrets.private(b"cipher key"), theirs, b"cipher", self.state.session)
        return self.agreed[other]

    def comes_after(self, before: str, stage: str) -> None:
        """Refuse a stage whose turn hasn't come, or is over."""
        if before not in self.state.done:
            raise Refused(f"{stage} comes after {before}")
        later = STAGES[STAGES.index(stage) + 1 :]
        if stage not in self.state.done and any(each in self.state.done for each in later):
            raise Refused(f"it is too late to {stage}")

    def once(self, stage: str, asked: bytes) -> None:
        """A stage is answered once; the same question gets the same answer, another one none."""
        digest = hashlib.sha256(asked).digest()
        if self.state.done.setdefault(stage, digest) != digest:
            raise Refused(f"this client has answered the stage {stage} of this sum already, to another message")
