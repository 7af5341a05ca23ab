"""The service behind a socket, with bounds on connections."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from fedrecplus.errors import UserError
from fedrecplus.terminal import log_handler
from fedrecplus.web.service.app import ServiceOptions, service
from fedrecplus.web.service.limits import Limits
from fedrecplus.web.service.serving import ModelSource


def bounded_connections(limits: Limits) -> type[H11Protocol]:
    """uvicorn's protocol with deadlines and a bound on open connections.

    uvicorn alone waits forever for the rest of a header, of a body, and for a peer that doesn't read its answer.
    """

    class BoundedConnection(H11Protocol):
        """One connection. A deadline runs from connecting or the first byte of a request, and anew from its header."""

        _deadline: asyncio.TimerHandle | None = None
        _watched: Any = None
        """what the deadline is for: the header that is awaited, or the request that is answered"""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
            else:
                self._watch(fresh=True)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait_for(None)
            super().connection_lost(exc)

        def timeout_keep_alive_handler(self) -> None:
            if self.transport is not None and self.transport.get_write_buffer_size() > 0:
                self.transport.abort()  # nobody reads: a polite close would wait for them
            else:
                super().timeout_keep_alive_handler()

        def _watch(self, fresh: bool = False) -> None:
            answering = self.cycle is not None and not self.cycle.response_complete
            if answering or self.conn.their_state is h11.SEND_BODY:
                self._wait_for(self.cycle)
            elif fresh or self.conn.trailing_data[0]:
                self._wait_for("header")
            else:
                self._wait_for(None)

        def _wait_for(self, watched: Any) -> None:
            if watched is self._watched:
                return
            if self._deadline is not None:
                self._deadline.cancel()
            self._watched = watched
            seconds = limits.header_seconds if watched == "header" else limits.request_seconds
            self._deadline = None if watched is None else self.loop.call_later(seconds, self.transport.abort)

    return BoundedConnection


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


def log_to_stderr() -> None:
    """Lines with times, without colour: who asked is not in them."""
    handler = log_handler()
    for name in ("fedrecplus.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if name != "uvicorn" else logging.WARNING)
        logger.propagate = False
