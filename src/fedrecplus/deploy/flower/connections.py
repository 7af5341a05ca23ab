"""Connections to the SuperLink: bounded in number, and closed where a request doesn't come to its end.

Uvicorn waits for ever for the rest of a request, and reads headers of any length. Here a stranger, who hasn't signed a
request yet, has seconds for each request, few bytes for its headers, and a place only as long as not too many newer
strangers came: then the oldest goes. Whoever has signed a request keeps the connection between requests; of one key a
few are kept, and one that doesn't read its answer is closed, since the answer is in memory until it has.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS, BODY_SECONDS, HANDSHAKE_SECONDS = 10.0, 60.0, 6.0
"""a handshake takes two ways there and back: a phone whose packets take a second each has time to spare"""
STRANGER_KEEPS, NODE_KEEPS = 5, 75
"""seconds that a connection may be idle between requests"""
MOST_STRANGERS, MOST_OF_A_KEY = 256, 16
READ_SECONDS, LEAST_READ = 300.0, 2**16
"""who reads an answer reads as many bytes of it in as many seconds; the kernel asks for more in large portions alone"""
LONGEST_HEAD = 32 * 2**10
"""bytes"""
MOST_AHEAD = 8
"""requests that may come before the answer to an earlier one: nodes send none"""

_strangers: dict[BoundedConnection, None] = {}
"""in the order they came"""
_by_peer: dict[tuple[str, int], BoundedConnection] = {}
_by_key: dict[bytes, dict[BoundedConnection, None]] = {}
"""in the order they were last used"""


class BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Uvicorn's protocol with limits."""

    head_seconds, body_seconds, read_seconds = HEAD_SECONDS, BODY_SECONDS, READ_SECONDS
    most_strangers = MOST_STRANGERS

    def connection_made(self, transport: Any) -> None:
        """A stranger comes; where too many are here, the one who came first must go."""
        super().connection_made(transport)
        self.timeout_keep_alive = STRANGER_KEEPS
        self._timer: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None
        self._key = b""
        self._head = 0
        self._seen: Any = None
        _strangers[self] = None
        if self.client:
            _by_peer[self.client] = self
        while len(_strangers) > self.most_strangers:
            next(iter(_strangers))._drop()
        self._give(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Read on, within the time and the bytes that a request has."""
        if self._timer is None:
            self._give(self.head_seconds)
        in_body = self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete
        self._head += len(data)
        super().data_received(data)
        if self.cycle is not self._seen:  # headers of a new request are complete
            self._seen, self._head = self.cycle, 0
            self._give(self.body_seconds)
        elif in_body:  # the app bounds that
            self._head = 0
        elif self._head > LONGEST_HEAD:  # also while an earlier answer waits to be read
            self._drop()
        if len(getattr(self, "pipeline", ())) > MOST_AHEAD:  # each takes kilobytes, and whoever sends it some bytes
            self._drop()
        if self.cycle is not None and not self.cycle.more_body:
            self._stop_clock()

    def on_response_complete(self) -> None:
        """The clock stands until the next request begins."""
        self._stop_clock()
        self._head = 0
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop_clock()
        self._stop_watching()
        self._leave_key()
        _strangers.pop(self, None)
        if self.client:
            _by_peer.pop(self.client, None)
        super().connection_lost(exc)

    def is_known(self, key: bytes) -> None:
        """Who is here has signed a request with this key. Where it has many connections, the oldest must go."""
        _strangers.pop(self, None)
        self.timeout_keep_alive = NODE_KEEPS
        if self._key != key:
            self._leave_key()
        self._key = key
        its = _by_key.setdefault(key, {})
        its.pop(self, None)
        its[self] = None
        while len(its) > MOST_OF_A_KEY:
            next(iter(its))._drop()

    def pause_writing(self) -> None:
        """More of an answer waits than the connection takes."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It was read."""
        self._stop_watching()
        super().resume_writing()

    def _watch(self, waiting: int) -> None:
        """Look again whether less waits than now."""

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left > waiting - LEAST_READ:
                self._drop()
            else:
                self._watch(left)

        self._stop_watching()
        self._reader = self.loop.call_later(self.read_seconds, look)

    def _stop_watching(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def _leave_key(self) -> None:
        its = _by_key.get(self._key, {})
        its.pop(self, None)
        if not its:
            _by_key.pop(self._key, None)

    def _give(self, seconds: float) -> None:
        self._stop_clock()
        self._timer = self.loop.call_later(seconds, self._drop)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self) -> None:
        _strangers.pop(self, None)
        self._leave_key()
        self.transport.abort()


def note_known(peer: tuple[str, int] | None, key: bytes) -> None:
    """Tell the connection of a peer that a request of its is signed by this key, which was admitted."""
    if peer is not None and (connection := _by_peer.get((peer[0], peer[1]))) is not None:
        connection.is_known(key)


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop that waits seconds, not a minute, for a TLS handshake."""
    try:
        from uvloop import Loop
    except ImportError:
        from asyncio import SelectorEventLoop as Loop  # type: ignore[assignment]

    class Impatient(Loop):
        """A loop whose servers close connections that don't come to a handshake."""

        async def create_server(self, *arguments: Any, **options: Any) -> Any:
            """A server."""
            if options.get("ssl") is not None:
                options.setdefault("ssl_handshake_timeout", HANDSHAKE_SECONDS)
            return await super().create_server(*arguments, **options)

    return Impatient()


def allow_many_files() -> None:
    """Let this process have as many connections as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
