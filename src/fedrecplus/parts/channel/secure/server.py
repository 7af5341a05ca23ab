"""The server's half of a secure sum: it passes messages on, adds up masked vectors, and takes the masks out of the sum.

A state machine without input or output; its stages are in ``stages/``. In each it ``take``s what clients send;
``close`` ends the stage and says what to send to whom; after the last one ``total`` is the ring sum over ``survivors``.
Too few answers end the sum: ``Aborted`` says why, and nothing of anybody is known.

After: Bonawitz et al. 2017, Figure 4, with the neighbours of Bell et al. 2020
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from fedrecplus.arrays import Items
from fedrecplus.parts.channel._ring import RingLayout, RingVector, from_bytes, zeros
from fedrecplus.parts.channel._summing import senders_of
from fedrecplus.parts.channel.secure import graph, keys
from fedrecplus.parts.channel.secure.messages import KEY_BYTES, Advertisement, Refused
from fedrecplus.parts.channel.secure.server_state import Aborted, KeptSum, ServerOptions, Unmasking
from fedrecplus.parts.channel.secure.stages import STAGES, advertise, consent, mask, reveal, share

_STAGES = {"advertise": advertise, "share": share, "mask": mask, "consent": consent, "reveal": reveal}
_ORDER = (*STAGES, "done")


class SecureServer:
    """One secure sum of a cohort."""

    def __init__(
        self,
        session: bytes,
        layout: RingLayout,
        clients: Sequence[int],
        options: ServerOptions | None = None,
        pinned: Mapping[int, bytes] | None = None,
        shuffle: Callable[[list[int]], None] | None = None,
        everybody: bytes = b"",
    ) -> None:
        """A sum that these clients are asked for. ``shuffle`` is given in simulation, and random otherwise.

        ``everybody`` are the numbers of a cohort that these clients are a group of.
        """
        self.session, self.layout, self.pinned = session, layout, pinned
        self.options = options or ServerOptions()
        self.asked = frozenset(clients)
        self.stage = "advertise"
        self.plan: graph.GraphPlan | None = None
        self.shuffle = shuffle or secrets.SystemRandom().shuffle
        self.everybody = everybody
        self.context = b""
        """what all clients are told beside the messages before they mask: see ``SecureClient.mask``"""
        self.total: RingVector = zeros(layout)
        self.refused: list[tuple[int, str]] = []
        """clients whose messages were refused, and why"""
        self.complaints: dict[int, list[int]] = {}
        """client → neighbours whose shares it couldn't open"""
        self.blamed: dict[int, str] = {}
        """clients that gave wrong shares, or that others can't be in a sum with, and why"""
        self.adverts: dict[int, Advertisement] = {}
        self.neighbours: dict[int, tuple[int, ...]] = {}
        self.shares: dict[int, dict[int, bytes]] = {}
        self.commitments: dict[int, bytes] = {}
        self.vectors: set[int] = set()
        self.consents: dict[int, bytes] = {}
        self.unmasking = Unmasking()
        self._seen: dict[tuple[str, int], bytes] = {}
        self.survivor_messages: dict[int, bytes] = {}
        self.probe = keys.private_key(secrets.token_bytes(KEY_BYTES))
        """agrees with every sound public key"""

    def to_bytes(self) -> bytes:
        """What is needed to finish a sum of which only the last stage is left."""
        if self.stage != "reveal" or self.plan is None:
            raise ValueError("only a sum that is about to be unmasked can be kept")
        return msgspec.msgpack.encode(
            KeptSum(
                self.session, self.layout, sorted(self.asked), self.options, self.plan, list(self.adverts.values()),
                self.neighbours, sorted(self.shares), self.commitments, sorted(self.vectors),
                sorted(self.consents), self.pair_context, self.total.to_bytes(),
            )
        )  # fmt: skip

    @classmethod
    def of_bytes(cls, data: bytes, pinned: Mapping[int, bytes] | None = None) -> SecureServer:
        """The sum that was kept, in its last stage; shares that came before are asked for again."""
        kept = msgspec.msgpack.decode(data, type=KeptSum)
        server = cls(kept.session, kept.layout, kept.asked, kept.options, pinned)
        server.stage, server.plan, server.neighbours = "reveal", kept.plan, kept.neighbours
        server.adverts = {advert.number: advert for advert in kept.adverts}
        server.shares, server.commitments = {client: {} for client in kept.shared}, kept.commitments
        server.vectors, server.consents = set(kept.vectors), dict.fromkeys(kept.consents, b"")
        server.context = kept.context
        server.total.add(from_bytes(kept.total, kept.layout))
        return server

    @property
    def pair_context(self) -> bytes:
        """What masks of two clients are bound to beside the session."""
        return self.context + keys.cohort_context(self.everybody)

    @property
    def survivors(self) -> tuple[int, ...]:
        """The clients whose vectors are in the sum, ascending."""
        return tuple(sorted(self.vectors))

    @property
    def cohort(self) -> int:
        """Clients that advertised keys."""
        return len(self.adverts)

    def senders(self, among: Iterable[int] | None = None) -> Items | None:
        """Of every row, how many clients span it; None where everybody spans all."""
        senders = self.adverts if among is None else among
        return senders_of((self.layout.from_bits(self.adverts[client].rows) for client in senders), self.layout)

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients that may still answer in this stage."""
        able = {
            "advertise": self.asked, "share": self.adverts.keys(), "mask": self.shares.keys(),
            "consent": self.vectors, "reveal": self.vectors if self.pinned is None else self.consents.keys(),
        }  # fmt: skip
        return frozenset(client for client in able.get(self.stage, ()) if (self.stage, client) not in self._seen)

    def take(self, sender: int, data: bytes) -> None:
        """Take a client's message of this stage; the caller knows who sent it.

        ``Refused`` if it can't be: unknown client, wrong stage or session, a second message, bad keys or shares. The
        same message twice is taken once.
        """
        known, digest = self._seen.get((self.stage, sender)), hashlib.sha256(data).digest()
        if known == digest:
            return
        try:
            if known is not None:
                raise Refused(f"client {sender} has sent another {self.stage} message already")
            if sender not in self.waiting_for:
                raise Refused(f"client {sender} is not asked to {self.stage}")
            _STAGES[self.stage].take(self, sender, data)
        except Refused as refusal:
            self.refused.append((sender, str(refusal)))
            raise
        self._seen[self.stage, sender] = digest

    def close(self) -> dict[int, bytes]:
        """End the stage: what to send to whom next. ``Aborted`` where too few have answered."""
        if self.stage == "done":
            raise Refused("this sum is over")
        messages: dict[int, bytes] = _STAGES[self.stage].close(self)
        after = _ORDER.index(self.stage) + 1
        self.stage = _ORDER[after + (_ORDER[after] == "consent" and self.pinned is None)]
        return messages

    @property
    def threshold(self) -> int:
        """Shares that restore a secret; known when the first stage has closed."""
        assert self.plan is not None
        return self.plan.threshold

    def need(self, count: int, least: int, what: str) -> None:
        """End the sum unless so many clients did that."""
        if count < least:
            raise self.aborted(f"{count} clients {what}, and at least {least} are needed")

    def aborted(self, reason: str) -> Aborted:
        """Forget what came, and say why."""
        self.stage, self.total = "done", zeros(self.layout)
        return Aborted(reason)
