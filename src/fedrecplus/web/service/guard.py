"""What stands before the routes: whose requests are let in, how large and how many, and what is noted of them."""

from __future__ import annotations

import json
import logging
import math
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrecplus.rates import TokenBuckets, peer_of
from fedrecplus.web.browser import OWN_RESOURCES, SECURITY_HEADERS, is_own_origin, may_be_named
from fedrecplus.web.service.limits import Limits
from fedrecplus.web.service.metrics import ServiceMetrics

log = logging.getLogger("fedrecplus.service.access")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
TOO_MANY = "too many requests"
_FRAMES = 8
"""of a fault that the log names"""
_FREE = ("/health",)
"""asked by monitors, and answered by nothing but a few bytes"""


@dataclass(frozen=True)
class _Refused(Exception):
    status: int
    reason: str
    """for the counter"""
    problem: str
    remedy: str
    wait: float = 0.0


@dataclass
class Guard:
    """An ASGI application around another: checks, bounds, headers, one line of log without anything a person sent."""

    app: Application
    names: Collection[str]
    """names that requests may be for"""
    origins: Collection[str]
    """pages elsewhere that may ask; ``*`` for all"""
    limits: Limits
    rates: TokenBuckets
    metrics: ServiceMetrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no web sockets here
        began, answer = time.perf_counter(), _Answer(send, self._headers())
        self.metrics.open.inc()
        try:
            self._check(scope)
            await self.app(scope, await _whole_body(receive, self.limits.body), answer.send)
        except _Refused as refused:
            self.metrics.refused(refused.reason)
            await answer.refuse(refused)
        except Exception as error:
            _log_fault(error)
            if not answer.begun:
                await answer.refuse(_Refused(500, "fault", "this failed here", "tell the operator"))
        finally:
            self.metrics.open.dec()
            seconds, route = time.perf_counter() - began, _route(scope)
            self.metrics.answered(route, answer.status, seconds)
            log.info("%s %s %d %d B %.1f ms", _method(scope), route, answer.status, answer.size, 1000 * seconds)

    def _check(self, scope: Scope) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or not may_be_named(hosts[0], self.names):
            known = ", ".join(sorted(self.names))
            raise _Refused(421, "host", "this server has another name", f"it is called {known}; --name adds one")
        for origin in (value for name, value in headers if name == "origin"):
            if not (is_own_origin(origin, hosts[0]) or origin in self.origins or "*" in self.origins):
                problem = "pages from elsewhere are not let in"
                raise _Refused(403, "origin", problem, "the operator allows one with --allow-origin")
        if scope["path"] not in _FREE:
            seconds = self.rates.wait(peer_of(_peer(scope)))
            if seconds > 0:
                raise _too_many(seconds)
        lengths = [value for name, value in headers if name == "content-length"]
        if any(not value.isdecimal() or int(value[:20]) > self.limits.body for value in lengths):
            raise _too_large(self.limits.body)

    def _headers(self) -> dict[str, str]:
        return SECURITY_HEADERS if self.origins else SECURITY_HEADERS | OWN_RESOURCES


@dataclass
class _Answer:
    """What is sent back, with headers added and bytes counted."""

    forward: Send
    headers: dict[str, str]
    status: int = 500
    size: int = 0
    begun: bool = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            more = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
            message["headers"] = [*message["headers"], *(each for each in more if each[0] not in present)]
        self.size += len(message.get("body", b""))
        await self.forward(message)

    async def refuse(self, refused: _Refused) -> None:
        """An error in JSON; where an answer has begun, the connection ends without its rest."""
        if self.begun:
            raise refused
        body = json.dumps({"problem": refused.problem, "field": "", "remedy": refused.remedy}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(b"cache-control", b"no-store")]
        if refused.wait > 0:
            headers.append((b"retry-after", str(math.ceil(refused.wait)).encode()))
        if refused.status in (413, 421):
            headers.append((b"connection", b"close"))  # the rest of a body is not read
        await self.send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


async def _whole_body(receive: Receive, most: int) -> Receive:
    """The body, read up to the bound before anybody looks into it: what it says of its length may not be true."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body, more = body + message.get("body", b""), message.get("more_body", False)
        if len(body) > most:
            raise _too_large(most)
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _log_fault(error: Exception) -> None:
    """What failed and where, without the error's text: it might quote a rating."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-_FRAMES:]))
    log.error("a request failed: %s at %s", type(error).__name__, where)


def _too_large(most: int) -> _Refused:
    return _Refused(413, "size", f"the body has more than {most} bytes", "send fewer ratings")


def _too_many(seconds: float) -> _Refused:
    return _Refused(429, "rate", TOO_MANY, f"try again in {math.ceil(seconds)} s", seconds)


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"


def _route(scope: Scope) -> str:
    """The route as we wrote it, never the path or the query that came."""
    return str(getattr(scope.get("route"), "path", "none"))
