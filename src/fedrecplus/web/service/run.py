"""Start the service and keep it until somebody stops it."""

from __future__ import annotations

import logging
import signal
import socket

import uvicorn

from fedrecplus.errors import UserError
from fedrecplus.web.service.app import ServiceOptions, service
from fedrecplus.web.service.connections import bounded_connections
from fedrecplus.web.service.serving import ModelSource

_GRACE = 15
"""seconds that requests have to finish after a termination signal"""
_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 for any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by name: asyncio turns Nagle off for it
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(_BACKLOG)  # from now on requests wait, and none is refused
    except (OSError, OverflowError) as error:
        opened.close()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{host}:{port}: {why}", "choose another --port or --host") from None
    return opened


def server_of(source: ModelSource, options: ServiceOptions, *, behind_proxy: bool = False) -> uvicorn.Server:
    """uvicorn, with bounds on connections and without a log of its own."""
    limits = options.limits
    config = uvicorn.Config(
        service(source, options),
        http=bounded_connections(limits),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=behind_proxy,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=_GRACE,
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server, opened: socket.socket) -> None:
    """Serve until Ctrl-C or a termination signal; requests that run then are finished first."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.run(sockets=[opened])
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def log_to_stderr() -> None:
    """Lines with times, without colour: who asked is not in them."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("fedrecplus.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if name != "uvicorn" else logging.WARNING)
        logger.propagate = False
