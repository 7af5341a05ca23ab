"""The server's half of a secure sum: it passes messages on, adds up masked vectors, and takes the masks out of the sum.

A state machine without input or output. In each stage it ``take``s what clients send; ``close`` ends the stage and says
what to send to whom; after the last one ``total`` is the ring sum over ``survivors``. Too few answers end the sum:
``Aborted`` says why, and nothing of anybody is known.

After: Bonawitz et al. 2017, Figure 4, with the neighbours of Bell et al. 2020
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from fedrecplus.parts.channel._ring import Items, RingLayout, RingVector, from_bytes, zeros
from fedrecplus.parts.channel._summing import senders_of, too_few
from fedrecplus.parts.channel.secure import graph, keys, shamir
from fedrecplus.parts.channel.secure.client import SEALED_BYTES
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
    cut,
    pack,
    to_bits,
    unpack,
)
from fedrecplus.parts.channel.secure.server_state import Aborted, KeptSum, ServerOptions, Unmasking, sent_by

STAGES = ("advertise", "share", "mask", "consent", "reveal", "done")


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
    ) -> None:
        """A sum that these clients are asked for. ``shuffle`` is given in simulation, and random otherwise."""
        self.session, self.layout, self.pinned = session, layout, pinned
        self.options = options or ServerOptions()
        self.asked = frozenset(clients)
        self.stage = "advertise"
        self.plan: graph.GraphPlan | None = None
        self.shuffle = shuffle or secrets.SystemRandom().shuffle
        self.context = b""
        """what all clients are told beside the messages before they mask: see ``SecureClient.mask``"""
        self.total: RingVector = zeros(layout)
        self.refused: list[tuple[int, str]] = []
        """clients whose messages were refused, and why"""
        self._adverts: dict[int, Advertisement] = {}
        self._neighbours: dict[int, tuple[int, ...]] = {}
        self._shares: dict[int, dict[int, bytes]] = {}
        self._commitments: dict[int, bytes] = {}
        self._vectors: set[int] = set()
        self._consents: dict[int, bytes] = {}
        self._unmasking = Unmasking()
        self._seen: dict[tuple[str, int], bytes] = {}
        self._told: dict[int, bytes] = {}
        self._probe = keys.private_key(secrets.token_bytes(KEY_BYTES))
        """agrees with every sound public key"""

    def to_bytes(self) -> bytes:
        """What is needed to finish a sum of which only the last stage is left."""
        if self.stage != "reveal" or self.plan is None:
            raise ValueError("only a sum that is about to be unmasked can be kept")
        return msgspec.msgpack.encode(
            KeptSum(
                self.session, self.layout, sorted(self.asked), self.options, self.plan, list(self._adverts.values()),
                self._neighbours, sorted(self._shares), self._commitments, sorted(self._vectors),
                sorted(self._consents), self.context, self.total.to_bytes(),
            )
        )  # fmt: skip

    @classmethod
    def of_bytes(cls, data: bytes, pinned: Mapping[int, bytes] | None = None) -> SecureServer:
        """The sum that was kept, in its last stage; shares that came before are asked for again."""
        kept = msgspec.msgpack.decode(data, type=KeptSum)
        server = cls(kept.session, kept.layout, kept.asked, kept.options, pinned)
        server.stage, server.plan, server._neighbours = "reveal", kept.plan, kept.neighbours
        server._adverts = {advert.number: advert for advert in kept.adverts}
        server._shares, server._commitments = {client: {} for client in kept.shared}, kept.commitments
        server._vectors, server._consents = set(kept.vectors), dict.fromkeys(kept.consents, b"")
        server.context = kept.context
        server.total.add(from_bytes(kept.total, kept.layout))
        return server

    @property
    def survivors(self) -> tuple[int, ...]:
        """The clients whose vectors are in the sum, ascending."""
        return tuple(sorted(self._vectors))

    @property
    def cohort(self) -> int:
        """Clients that advertised keys."""
        return len(self._adverts)

    def senders(self, among: Iterable[int] | None = None) -> Items | None:
        """Of every row, how many clients span it; None where everybody spans all."""
        some = self._adverts if among is None else among
        return senders_of((self.layout.from_bits(self._adverts[client].rows) for client in some), self.layout)

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients that may still answer in this stage."""
        able = {
            "advertise": self.asked, "share": self._adverts.keys(), "mask": self._shares.keys(),
            "consent": self._vectors, "reveal": self._vectors if self.pinned is None else self._consents.keys(),
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
            getattr(self, f"_take_{self.stage}")(sender, data)
        except Refused as refusal:
            self.refused.append((sender, str(refusal)))
            raise
        self._seen[self.stage, sender] = digest

    def close(self) -> dict[int, bytes]:
        """End the stage: what to send to whom next. ``Aborted`` where too few have answered."""
        if self.stage == "done":
            raise Refused("this sum is over")
        messages: dict[int, bytes] = getattr(self, f"_close_{self.stage}")()
        after = STAGES.index(self.stage) + 1
        self.stage = STAGES[after + (STAGES[after] == "consent" and self.pinned is None)]
        return messages

    def _take_advertise(self, sender: int, data: bytes) -> None:
        message = sent_by(unpack(Advertisement, data, self.session), sender)
        try:
            self.layout.from_bits(message.rows)
        except ValueError as error:
            raise Refused(f"client {sender}: {error}") from None
        if len(message.signature) != (SIGNATURE_BYTES if self.pinned is not None else 0):
            raise Refused(f"client {sender}: a signature of {len(message.signature)} bytes")
        # what a neighbour would refuse later, and without a name, is refused here
        for key in (message.cipher_key, message.mask_key):
            try:
                keys.agree(self._probe, key, b"probe", self.session)
            except Refused as refused:
                raise Refused(f"client {sender}: {refused}") from None
        if message.cipher_key == message.mask_key:
            raise Refused(f"client {sender} has one key for both purposes")
        if any({message.cipher_key, message.mask_key} & {a.cipher_key, a.mask_key} for a in self._adverts.values()):
            raise Refused(f"client {sender} has a key that somebody else has")
        if self.pinned is not None:
            keys.check_signature(message, self.pinned)
        self._adverts[sender] = message

    def _close_advertise(self) -> dict[int, bytes]:
        clients, how = sorted(self._adverts), self.options
        self._need(len(clients), max(how.least_cohort, 2), "advertised keys")
        # rows that differ need masks between all who send them, and a server that lies could choose neighbours
        sparse = how.sparse and self.layout.whole and self.pinned is None
        plan = self.plan = graph.plan(len(clients), how.corrupted, how.dropout, self.pinned is not None, sparse)
        if plan.complete:
            self._neighbours = graph.everybody(clients)
        else:
            self._neighbours = graph.ring(clients, plan.neighbours, self.shuffle)
        records = {client: advert.record() for client, advert in self._adverts.items()}
        return {
            client: pack(
                Neighbourhood(
                    VERSION, self.session, plan.threshold, len(clients), b"".join(records[other] for other in others)
                )
            )
            for client, others in self._neighbours.items()
        }

    def _take_share(self, sender: int, data: bytes) -> None:
        message = sent_by(unpack(SealedShares, data, self.session), sender)
        pieces = cut(message.sealed, len(self._neighbours[sender]), SEALED_BYTES)
        self._commitments[sender] = message.commitment
        self._shares[sender] = dict(zip(self._neighbours[sender], pieces, strict=True))

    def _close_share(self) -> dict[int, bytes]:
        self._need(len(self._shares), self.options.least_cohort, "shared their secrets")
        boxes = {}
        for client in self._shares:
            near = self._neighbours[client]
            sealed = b"".join(self._shares[other][client] for other in near if other in self._shares)
            boxes[client] = pack(Inbox(VERSION, self.session, to_bits(other in self._shares for other in near), sealed))
        return boxes

    def _take_mask(self, sender: int, data: bytes) -> None:
        message = sent_by(unpack(MaskedVector, data, self.session), sender)
        rows = self.layout.from_bits(self._adverts[sender].rows)
        try:
            vector = from_bytes(message.data, self.layout, rows)
        except ValueError as error:
            raise Refused(f"client {sender}: {error}") from None
        self.total.add(vector)
        self._vectors.add(sender)

    def _close_mask(self) -> dict[int, bytes]:
        least = max(self.options.least_cohort, graph.fewest_of(self.options.honest, self.cohort))
        self._need(len(self._vectors), least, "sent their vectors")
        assert self.plan is not None
        willing = self._willing()
        for client in self.survivors:
            left = sum(other in self._vectors for other in self._neighbours[client])
            self._need(left, self.plan.threshold, f"are left of the neighbours of client {client}")
            left = sum(other in willing for other in self._neighbours[client])
            self._need(left, self.plan.threshold, f"would help to unmask client {client}: rows have too few senders")
        count = len(self._vectors)
        for client in self.survivors:
            near = sorted((client, *self._neighbours[client]))
            alive = to_bits(other in self._vectors for other in near)
            self._told[client] = pack(Survivors(VERSION, self.session, count, alive))
        return dict(self._told)

    def _willing(self) -> set[int]:
        """Survivors that will unmask: all but those of whom a row has too few senders left.

        Asked before anybody is: a sum that some began to unmask can't be begun anew.
        """
        before, after = self.senders(), self.senders(self._vectors)
        if before is None or after is None:
            return self._vectors
        few = too_few(before, after, self.options.fewest)
        rows = {client: self.layout.from_bits(self._adverts[client].rows) for client in self._vectors}
        return {client for client, each in rows.items() if not few[each].any()}

    def _take_consent(self, sender: int, data: bytes) -> None:
        message = sent_by(unpack(Consent, data, self.session), sender)
        assert self.pinned is not None
        signed = keys.signed_survivors(self._told[sender], (sender, *self._neighbours[sender]))
        keys.verify(self.pinned[sender], message.signature, b"survivors", signed, sender)
        self._consents[sender] = message.signature

    def _close_consent(self) -> dict[int, bytes]:
        assert self.plan is not None
        messages = {}
        for client in self._consents:
            near = self._neighbours[client]
            signed = [self._consents[other] for other in near if other in self._consents]
            self._need(len(signed), self.plan.threshold, f"of the neighbours of client {client} signed the survivors")
            present = to_bits(other in self._consents for other in near)
            messages[client] = pack(Consents(VERSION, self.session, present, b"".join(signed)))
        return messages

    def _take_reveal(self, sender: int, data: bytes) -> None:
        message = sent_by(unpack(Reveal, data, self.session), sender)
        owners = [other for other in self._neighbours[sender] if other in self._shares]
        for owner, share in zip(owners, cut(message.shares, len(owners), shamir.SHARE_BYTES), strict=True):
            kind = self._unmasking.seeds if owner in self._vectors else self._unmasking.keys
            kind.setdefault(owner, {})[sender] = share

    def _close_reveal(self) -> dict[int, bytes]:
        """Take every mask out of the sum."""
        seeds = {client: self._restored(client, self._unmasking.seeds, "seed") for client in self.survivors}
        gone = sorted(self._shares.keys() - self._vectors)
        lost = {
            client: self._restored(client, self._unmasking.keys, "mask key")
            for client in gone
            if any(other in self._vectors for other in self._neighbours[client])
        }
        for client, seed in seeds.items():
            rows = self.layout.from_bits(self._adverts[client].rows)
            add_mask(self.total, keys.mask_key(seed, self.session), self.layout, rows, minus=True)
        for client, secret in lost.items():
            self._remove_pairs(client, secret)
        return {}

    def _remove_pairs(self, gone: int, secret: bytes) -> None:
        """Take out the masks that survivors share with a client that dropped out."""
        rows, private = self.layout.from_bits(self._adverts[gone].rows), keys.private_key(secret)
        for other in self._neighbours[gone]:
            if other in self._vectors:
                mask_key = self._adverts[other].mask_key
                key = keys.pair_key(private, mask_key, self.session, gone, other, self.context)
                shared = shared_rows(rows, self.layout.from_bits(self._adverts[other].rows))
                add_mask(self.total, key, self.layout, shared, minus=other < gone)

    def _restored(self, owner: int, shares: Mapping[int, Mapping[int, bytes]], name: str) -> bytes:
        """A secret from the shares that came back; wrong shares are found by what its owner said of it before."""
        assert self.plan is not None
        places = {other: place for place, other in enumerate(self._neighbours[owner], 1)}
        points = {places[holder]: share for holder, share in shares.get(owner, {}).items()}
        self._need(len(points), self.plan.threshold, f"gave a share of the {name} of client {owner}")
        advert, commitment = self._adverts[owner], self._commitments[owner]

        def right(secret: bytes) -> bool:
            if name == "seed":
                return keys.commit(self.session, secret) == commitment
            return keys.public_key(keys.private_key(secret)) == advert.mask_key

        secret, wrong = shamir.restore_checked(points, self.plan.threshold, right)
        for place in wrong:
            self.refused.append((self._neighbours[owner][place - 1], f"a wrong share of the {name} of client {owner}"))
        if secret is None:
            raise self._aborted(f"the shares of the {name} of client {owner} restore nothing: too many are wrong")
        return secret

    def _need(self, count: int, least: int, what: str) -> None:
        if count < least:
            raise self._aborted(f"{count} clients {what}, and at least {least} are needed")

    def _aborted(self, reason: str) -> Aborted:
        """Forget what came, and say why."""
        self.stage, self.total = "done", zeros(self.layout)
        return Aborted(reason)
