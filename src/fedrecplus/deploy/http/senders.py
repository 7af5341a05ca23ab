"""Who sent a request: signatures checked against the roster, once each, before a body is read."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fedrecplus.deploy.server.roster import Roster
from fedrecplus.deploy.wire.signatures import WINDOW, Unsigned, Verified, verify
from fedrecplus.rates import TokenBuckets, peer_of

_KEY = re.compile(r'keyid="([0-9a-f]{64})"')
_NOT_LET_IN = "no signature of an admitted key, or this machine's clock is wrong"
_LOOK = 1.0
"""seconds between looks whether the roster changed"""
_UNKNOWN_PER_SECOND, _UNKNOWN_AT_ONCE = 1.0, 30.0
"""requests of one address with keys that nobody admitted"""
_SLOWEST = 20_000.0
"""bytes a second that a body must come with, after some seconds"""
_PATIENCE = 20.0


@dataclass(frozen=True)
class Sender:
    """A node that proved who it is."""

    number: int
    verified: Verified


class Senders:
    """The keys that this worker has seen, and the nonces that they used lately."""

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self._numbers: dict[str, int] = {}
        self._version: tuple[Any, ...] = ()
        self._looked = 0.0
        self._used, self._used_before, self._since = set[bytes](), set[bytes](), time.monotonic()
        """marks of requests that came, in this time and in the one before it"""
        self._unknown = TokenBuckets(_UNKNOWN_PER_SECOND, _UNKNOWN_AT_ONCE)

    async def sender(self, request: Request) -> Sender:
        """The node that signed a request; 401 for anybody else, and for a request that was sent before."""
        await self._refresh()
        named, numbers = _KEY.search(request.headers.get("signature-input", "")), self._numbers
        if named is None:
            raise HTTPException(401, _NOT_LET_IN)
        key = named[1]
        if key not in numbers:
            number = await run_in_threadpool(self.roster.number_of, key)
            if number is None and not self._unknown.take(peer_of(request.client.host if request.client else "")):
                raise HTTPException(429, "too many tries")
            if number is None:
                raise HTTPException(401, _NOT_LET_IN)
            numbers[key] = number  # not of self, which may be another one by now: somebody was expelled meanwhile
        verified = self.key_of(request)
        if verified.key != key:
            raise HTTPException(401, _NOT_LET_IN)
        return Sender(numbers[key], verified)

    def key_of(self, request: Request) -> Verified:
        """Whoever signed a request, known or not; refuses one that came before, as long as its time is good."""
        target = request.scope["raw_path"].decode("latin-1")
        if request.scope["query_string"]:
            target += "?" + request.scope["query_string"].decode("latin-1")
        try:
            verified = verify(request.method, target, request.headers)
        except Unsigned:
            raise HTTPException(401, _NOT_LET_IN) from None
        mark = hashlib.blake2b(f"{verified.key} {verified.nonce}".encode(), digest_size=16).digest()
        if time.monotonic() - self._since > 2 * WINDOW:
            self._used_before, self._used, self._since = self._used, set(), time.monotonic()
        if mark in self._used or mark in self._used_before:
            raise HTTPException(401, "a request that was sent before")
        self._used.add(mark)
        return verified

    async def _refresh(self) -> None:
        """Forget all keys when somebody was admitted or expelled."""
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        version = await run_in_threadpool(self.roster.version)
        if version != self._version:
            self._numbers, self._version = {}, version


async def body_of(request: Request, verified: Verified, longest: int) -> bytes:
    """A request's body, if it is what was signed, not too long, and comes in a decent time."""
    length = request.headers.get("content-length", "")
    if not length.isdigit() or len(length) > 12:
        raise HTTPException(411, "how long is it?")
    if int(length) > longest:
        raise HTTPException(413, f"{length} bytes, at most {longest}")
    parts, size = [], 0
    try:
        async with asyncio.timeout(_PATIENCE + int(length) / _SLOWEST):
            async for part in request.stream():
                size += len(part)
                if size > longest:
                    raise HTTPException(413, "longer than it said")
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, "too slow") from None
    body = b"".join(parts)
    try:
        verified.check_body(body)
    except Unsigned:
        raise HTTPException(401, "another body than was signed") from None
    return body
