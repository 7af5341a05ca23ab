"""``python -m fedrecplus.deploy.operate.serving``: one process of a server, a worker or a coordinator."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from fedrecplus.deploy.node import end_with_parent
from fedrecplus.deploy.operate.certificates import SERVER, SERVER_KEY
from fedrecplus.deploy.operate.homes import TOKEN, ServerHome
from fedrecplus.deploy.operate.processes import Child, python_module
from fedrecplus.deploy.server.lease import SECONDS
from fedrecplus.terminal import log_to_stderr

if TYPE_CHECKING:
    import uvicorn

_MOST_CONNECTIONS = 30_000
_ENDING = 5.0
"""seconds that a process has left whose parent is gone"""
_COLLECTED = (50_000, 20, 100)
"""objects between two looks for garbage: each device that waits is some hundred of them, and by Python's own numbers
(700, 10, 10) a fourth of a poll's time was looking through those that others hold"""
_KEEP_ALIVE, _SHUTDOWN = 75, 1
"""seconds that an idle connection stays open, and that requests have left when the worker ends"""


def worker(home: ServerHome) -> uvicorn.Server:
    """What answers devices."""
    import uvicorn

    from fedrecplus.deploy.http.app import Served, make_app

    served = Served(
        home.database, f"{socket.gethostname()[:40]}:{os.getpid()}", home.authority,
        (home.path / TOKEN).read_text(encoding="ascii").strip(), home.certificate_days,
        home.page if home.page.exists() else None,
    )  # fmt: skip
    certificate, key = (None if home.insecure else str(home.certificates / name) for name in (SERVER, SERVER_KEY))
    app = make_app(served)

    class Worker(uvicorn.Server):
        """Lets devices go before it ends; else each poll would be broken off, with a traceback in the log."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.room.end()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", backlog=4096,
        limit_concurrency=_MOST_CONNECTIONS, timeout_keep_alive=_KEEP_ALIVE, timeout_graceful_shutdown=_SHUTDOWN,
        server_header=False, forwarded_allow_ips="127.0.0.1,::1", ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    return Worker(config)


def coordinate(home: ServerHome, lease_seconds: float = SECONDS) -> None:
    """Run rounds whenever no other process does, until told to end."""
    from fedrecplus.deploy.server.coordinator import coordinate as run

    def stop(*_: object) -> None:
        raise SystemExit(0)  # the lease is let go on the way out, and another takes over at once

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop)
    run(home.database, threading.Event(), lease_seconds)


def serving_processes(
    home: ServerHome, listener: socket.socket, workers: int, log: Path | None = None, lease: float = SECONDS
) -> list[Child]:
    """The processes of a server: a coordinator, and workers that share a socket."""
    name, where = "fedrecplus.deploy.operate.serving", ("--home", str(home.path.absolute()))
    descriptor = listener.fileno()
    command = python_module(name, "work", "--fd", str(descriptor), *where)
    return [
        Child(python_module(name, "coordinate", "--lease", str(lease), *where), log),
        *(Child(command, log, (descriptor,)) for _ in range(workers)),
    ]


def main() -> int:
    """One process, which ends with its parent."""
    options = argparse.ArgumentParser(prog="fedrecplus.deploy.operate.serving")
    options.add_argument("role", choices=["work", "coordinate"])
    options.add_argument("--home", type=Path, required=True)
    options.add_argument("--fd", type=int)
    options.add_argument("--lease", type=float, default=SECONDS)
    given = options.parse_args()
    log_to_stderr()
    end_with_parent(_ENDING)
    home = ServerHome.load(given.home)
    if given.role == "coordinate":
        coordinate(home, given.lease)
    else:
        serving = worker(home)
        gc.freeze()
        gc.set_threshold(*_COLLECTED)
        serving.run(sockets=[socket.socket(fileno=given.fd)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
