"""A worker with TLS in this process, over a database of its own: for tests that speak to it."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path
from types import TracebackType

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.deploy.node import ServerConnection, trust
from fedrecplus.deploy.operate.certificates import CA
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import server_port
from fedrecplus.deploy.operate.serving import worker
from fedrecplus.deploy.wire.signatures import Signer
from tests.waiting import wait_until


class Running:
    """A server's home, and one of its workers."""

    def __init__(self, path: Path, address: str = "", *, insecure: bool = False, host: str = "127.0.0.1") -> None:
        self.home = ServerHome(path.absolute(), host, server_port(), insecure, address=address)
        self.home.prepare([])
        self.listener, self.worker = self.home.listening(), worker(self.home)
        self._thread = threading.Thread(target=lambda: self.worker.run(sockets=[self.listener]), daemon=True)

    @property
    def ca(self) -> Path:
        return self.home.certificates / CA

    def __enter__(self) -> Running:
        self._thread.start()
        wait_until(lambda: self.worker.started or not self._thread.is_alive())
        assert self.worker.started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.worker.should_exit = True
        self._thread.join(20)
        self.listener.close()
        self.home.database.close()

    def admitted(self, name: str = "") -> tuple[int, Ed25519PrivateKey]:
        """A node that may connect."""
        key = Ed25519PrivateKey.generate()
        return self.home.roster.admit(key.public_key().public_bytes_raw(), name)[0], key

    def call(self, key: Ed25519PrivateKey, method: str, target: str, body: bytes = b"") -> bytes:
        """One call as a node makes it."""
        connection = ServerConnection("127.0.0.1", self.home.port, trust(self.ca), key)
        try:
            return connection.call(method, target, body)
        finally:
            connection.close()

    def raw(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """One request with exactly these headers."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.home.port, timeout=30, context=trust(self.ca))
        try:
            connection.request(method, target, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read(), {name.lower(): value for name, value in reply.getheaders()}
        finally:
            connection.close()


def signed(key: Ed25519PrivateKey, method: str, target: str, body: bytes = b"") -> dict[str, str]:
    return Signer(key).headers(method, target, body)
