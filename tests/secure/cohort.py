"""A cohort of clients and a server that talk in one process, stage by stage, so that tests can interfere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.parts.channel import Encoding, RingLayout, RingVector, add_all, encode, encoding_of
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.server_state import ServerOptions
from fedrecplus.protocol import Upload

SESSION = b"a session in tests"
Change = Callable[[int, bytes], bytes]


class Cohort:
    """Some clients with made-up uploads."""

    def __init__(
        self, count: int, layout: RingLayout, pinned: bool = False, options: ServerOptions | None = None
    ) -> None:
        rng = np.random.default_rng(count)
        self.layout, self.uploads = layout, [made_up(client, layout, rng) for client in range(count)]
        self.encoding: Encoding = encoding_of(layout, np.full(layout.items, count), count, 8.0, 4.0, 2.0)
        self.identities = {client: Ed25519PrivateKey.generate() for client in range(count)} if pinned else None
        self.pins = None
        if self.identities is not None:
            self.pins = {client: key.public_key().public_bytes_raw() for client, key in self.identities.items()}
        self.clients = {client: self._client(client) for client in range(count)}
        options = options or ServerOptions(least_cohort=2)
        self.server = SecureServer(SESSION, layout, range(count), options, self.pins)
        self.asked: dict[int, bytes] = dict.fromkeys(self.clients, b"")
        self.survivors: dict[int, bytes] = {}

    def _client(self, client: int) -> SecureClient:
        rows = self.layout.rows_for(self.uploads[client].items)
        identity = None if self.identities is None else self.identities[client]
        return SecureClient(client, SESSION, self.layout, rows, 2, 1, identity, self.pins)

    def restart(self, client: int) -> None:
        """Go on with what the client wrote down."""
        identity = None if self.identities is None else self.identities[client]
        self.clients[client] = SecureClient.of_bytes(self.clients[client].to_bytes(), identity, self.pins)

    def vector(self, client: int) -> RingVector:
        """A client's numbers, unmasked."""
        return encode(self.uploads[client], self.encoding, key=client)

    def answer(self, client: int) -> bytes:
        """What a client says in the server's present stage."""
        who, asked, stage = self.clients[client], self.asked[client], self.server.stage
        if stage == "advertise":
            return who.advertise()
        if stage == "mask":
            return who.mask(asked, self.vector(client))
        if stage == "reveal":
            return who.reveal(self.survivors[client], asked if self.pins is not None else b"")
        return getattr(who, stage)(asked)

    def stage(self, without: Iterable[int] = (), change: Change = lambda _, said: said) -> None:
        """Everybody answers but some, and the stage is closed."""
        for client in set(self.asked) - set(without):
            self.server.take(client, change(client, self.answer(client)))
        self.asked = self.server.close()
        if self.server.stage in ("consent", "reveal") and not self.survivors:
            self.survivors = dict(self.asked)

    def until(self, stage: str, vanish: Mapping[str, Iterable[int]] | None = None) -> Cohort:
        """Run the stages before one; ``vanish`` says who is gone from a stage on."""
        gone: set[int] = set()
        while self.server.stage != stage:
            gone |= set((vanish or {}).get(self.server.stage, ()))
            self.stage(gone)
        return self

    def plain(self) -> RingVector:
        """The sum of the survivors' unmasked vectors."""
        return add_all((self.vector(client) for client in self.server.survivors), self.layout)


def made_up(client: int, layout: RingLayout, rng: np.random.Generator) -> Upload:
    """An upload within all bounds."""
    items = np.sort(rng.choice(layout.items, 4, replace=False))
    return Upload(
        client, items, rng.normal(size=(4, layout.columns)), weight=float(rng.uniform(0.5, 2)),
        statistic=rng.uniform(-1, 1, layout.statistic_size),
    )  # fmt: skip


def assert_equal(found: RingVector, expected: RingVector) -> None:
    """Bit for bit."""
    np.testing.assert_array_equal(found.updates, expected.updates)
    np.testing.assert_array_equal(found.weights, expected.weights)
