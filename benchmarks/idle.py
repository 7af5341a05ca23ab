"""Devices that do nothing but wait for work, over TLS, with keys: ``python -m benchmarks.idle --devices 20000``.

Each has a connection of its own, and a signed request that the server holds. Measured are the worker's memory, and its
processor time over a window in which everybody asks anew at least once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import insert

from benchmarks.load import Watched
from fedrecplus.deploy.node import trust
from fedrecplus.deploy.operate.certificates import CA
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.runs import running_server
from fedrecplus.deploy.server.schema import nodes
from fedrecplus.deploy.wire.signatures import Signer

_AT_ONCE = 64
"""connections that are opened at a time"""


def admitted(server: ServerHome, devices: int) -> list[Ed25519PrivateKey]:
    """So many keys in the roster, written at once."""
    keys = [Ed25519PrivateKey.generate() for _ in range(devices)]
    rows = [
        {"number": number, "key": key.public_key().public_bytes_raw().hex(), "name": f"device {number}",
         "expelled": False, "admitted_at": time.time()}
        for number, key in enumerate(keys, 1)
    ]  # fmt: skip
    with server.database.changing() as connection:
        for first in range(0, devices, 500):
            connection.execute(insert(nodes), rows[first : first + 500])
    return keys


class Crowd:
    """Devices on long polls, in one process."""

    def __init__(self, port: int, tls: ssl.SSLContext, wait: float) -> None:
        self.port, self.tls, self.wait = port, tls, wait
        self.count: Counter[str] = Counter()
        self._opening = asyncio.Semaphore(_AT_ONCE)

    async def device(self, signer: Signer) -> None:
        """Poll for ever; a connection that ends is opened anew."""
        while True:
            try:
                async with self._opening:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, limit=2**12)
                    self.count["connected"] += 1
                    await self._ask(writer, signer)
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    self.count[head.split(b" ", 2)[1].decode()] += 1
                    await self._ask(writer, signer)
            except (OSError, asyncio.IncompleteReadError, ssl.SSLError) as error:
                self.count[type(error).__name__] += 1
                await asyncio.sleep(1.0)

    async def _ask(self, writer: asyncio.StreamWriter, signer: Signer) -> None:
        writer.write(signed(signer, "GET", f"/v1/work?wait={self.wait:.1f}&after=0"))
        await writer.drain()


def signed(signer: Signer, method: str, target: str, body: bytes = b"") -> bytes:
    """A request as it goes over a connection."""
    headers = {"host": "127.0.0.1", "content-length": str(len(body)), **signer.headers(method, target, body)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def measured(server: ServerHome, given: argparse.Namespace) -> dict[str, Any]:
    """Connect all of them, and look at the worker for a while."""
    crowd = Crowd(server.port, trust(server.certificates / CA), given.wait)
    signers = [Signer(key) for key in admitted(server, given.devices)]
    worker = Watched("operate.serving work")
    began = time.monotonic()
    tasks = [asyncio.create_task(crowd.device(signer)) for signer in signers]
    while crowd.count["connected"] < given.devices and time.monotonic() - began < given.patience:
        await asyncio.sleep(1.0)
    connected = time.monotonic() - began
    await asyncio.sleep(given.wait)  # the first polls were asked as fast as connections came
    worker.look()
    before, polls, at = worker.cpu, Counter(crowd.count), time.monotonic()
    await asyncio.sleep(given.seconds)
    worker.look()
    seconds = time.monotonic() - at
    for task in tasks:
        task.cancel()
    asked = crowd.count["204"] - polls["204"]
    return {
        "devices": given.devices, "connected": crowd.count["connected"], "seconds to connect": round(connected, 1),
        "worker's MB": worker.peak // 10**6, "share of a core": round((worker.cpu - before) / seconds, 3),
        "polls a second": round(asked / seconds, 1), "ms of processor a poll":
        round(1000 * (worker.cpu - before) / max(asked, 1), 2), "count": dict(crowd.count),
        "load average": os.getloadavg(),
    }  # fmt: skip


def main() -> None:
    """Start a server, connect, measure."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.idle")
    options.add_argument("--devices", type=int, default=1000)
    options.add_argument("--wait", type=float, default=50.0, help="seconds that a poll is held")
    options.add_argument("--seconds", type=float, default=100.0, help="that are measured")
    options.add_argument("--patience", type=float, default=600.0)
    given = options.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix="idle") as name, running_server(Path(name) / "server") as server:
        print(json.dumps(asyncio.run(measured(server, given)), indent=1))


if __name__ == "__main__":
    main()
