"""The HTTP API, `/v1`: join, ask for work, fetch an object, answer. Bodies are MessagePack, requests are signed.

A worker keeps nothing that another one needs: kill it, and devices go on with the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Request, Response
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from fedrecplus import __version__
from fedrecplus.deploy.http.answers import KEPT, OVER, TWICE, UNKNOWN, Answer, AnswerWriter
from fedrecplus.deploy.http.metrics import render
from fedrecplus.deploy.http.offer import Offers
from fedrecplus.deploy.http.senders import Senders, body_of
from fedrecplus.deploy.http.waiting import Displaced, WaitingRoom
from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.published import PublishedModels
from fedrecplus.deploy.server.roster import Roster
from fedrecplus.deploy.server.schema import objects
from fedrecplus.deploy.server.task_log import public_log
from fedrecplus.deploy.wire.stages import LARGEST_MESSAGE
from fedrecplus.rates import TokenBuckets, peer_of

MEDIA = "application/msgpack"
_LONGEST_WAIT = 55.0
"""seconds that a poll is held: proxies close a silent connection after sixty"""
_LONGEST_AWAY, _DAY = 1800.0, 86_400.0
_LONGEST_CODE = 4096
_OVERHEAD = 4096
"""bytes of an answer beside its largest message"""
_RECENT = 4
"""objects that a worker has at hand: this round's table, the catalogue, and those before them"""
_SIGNED = ("content-digest", "signature", "signature-input")
"""headers that a page from another origin sends"""
_OFFER_SECONDS = 5
"""that caches may keep an offer for"""
_JOINS_PER_SECOND, _JOINS_AT_ONCE = 1.0, 30.0
_WRONG_PER_SECOND, _WRONG_AT_ONCE = 5.0, 100.0
"""requests of one address, and wrong codes of all together: strangers keep nobody out who has a right one"""

_PAGE_HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",  # the rest is in the page itself, as it is in a copy elsewhere
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


class Enrolment(msgspec.Struct):
    """What a stranger sends to join."""

    code: str
    name: str = ""


class Poll(msgspec.Struct, frozen=True):
    """What a node says when it asks for work."""

    wait: Annotated[float, msgspec.Meta(ge=0.0, le=3600.0, description="seconds to hold the answer")] = 0.0
    after: Annotated[int, msgspec.Meta(ge=0, description="the last question that was dealt with")] = 0
    away: Annotated[float, msgspec.Meta(ge=0.0, description="seconds to the next visit, if this is the last one")] = 0.0

    @classmethod
    def documented(cls) -> dict[str, Any]:
        """For the OpenAPI page."""
        described = msgspec.json.schema_components([cls])[1]["Poll"]["properties"]
        return {"parameters": [{"name": name, "in": "query", "schema": schema} for name, schema in described.items()]}


@dataclass(frozen=True)
class Served:
    """What a worker is started with."""

    database: Database
    name: str
    """of this worker"""
    authority: bytes = b""
    """the certificate that links name; empty where a proxy has a public one"""
    metrics_token: str = ""
    certificate_days: float = math.inf
    page: Path | None = None
    """folder of the page that invitations open"""


class Api:
    """One worker's answers, route by route."""

    def __init__(self, served: Served) -> None:
        self.served, self.database, self.roster = served, served.database, Roster(served.database)
        self.room, self.senders = WaitingRoom(self.database, served.name), Senders(self.roster)
        self.writer, self.offers = AnswerWriter(self.database), Offers(self.database)
        self._receiving = set[int]()
        self._joins = TokenBuckets(_JOINS_PER_SECOND, _JOINS_AT_ONCE)
        self._wrong = TokenBuckets(_WRONG_PER_SECOND, _WRONG_AT_ONCE)
        self._content = functools.lru_cache(maxsize=_RECENT)(self._object)
        self._expires = time.time() + _DAY * served.certificate_days  # of the certificate that this worker has read

    async def authority(self) -> Response:
        """The certificate of the authority that an invitation names by its fingerprint."""
        if not self.served.authority:
            raise HTTPException(404, "this server has a public certificate")
        return Response(self.served.authority, media_type="application/x-pem-file")

    async def join(self, request: Request) -> Response:
        """Join by an invitation's code; signed with the key that is to be admitted."""
        if not self._joins.take(peer_of(request.client.host if request.client else "")):
            raise HTTPException(429, "too many tries")
        verified = self.senders.key_of(request)
        try:
            said = msgspec.msgpack.decode(await body_of(request, verified, _LONGEST_CODE), type=Enrolment)
        except (msgspec.MsgspecError, ValueError):
            raise HTTPException(400, "malformed") from None
        known = await run_in_threadpool(self.roster.enrol, said.code, bytes.fromhex(verified.key), said.name)
        if known is None:
            if not self._wrong.take("all"):
                raise HTTPException(429, "too many tries")
            raise HTTPException(403, "no such invitation, or it was used, or has expired")
        self.room.counters["enrolled"] += 1
        return _packed({"node": known[0], "name": known[1]})

    async def next_work(self, request: Request) -> Response:
        """The next question for the node that signed this; 204 where none came. Who is away is asked all the same."""
        sender = await self.senders.sender(request)
        try:  # FastAPI's own reading of three numbers was a fifth of a poll, without the network
            poll = msgspec.convert(dict(request.query_params), Poll, strict=False)
        except msgspec.ValidationError as error:
            raise HTTPException(422, str(error)) from None
        seconds = min(max(poll.wait, 0.01), _LONGEST_WAIT)
        try:
            content = await self.room.next_question(sender.number, poll.after, seconds, min(poll.away, _LONGEST_AWAY))
        except Displaced:
            raise HTTPException(409, "another process asks with this node's key: is this home a copy?") from None
        return Response(status_code=204) if content is None else Response(content, media_type=MEDIA)

    async def leave(self, request: Request) -> Response:
        """The node that signed this goes: nobody waits for it."""
        self.room.leave((await self.senders.sender(request)).number)
        return Response(status_code=204)

    async def answer(self, number: int, request: Request) -> Response:
        """The sealed answer to a question; one for each."""
        sender = await self.senders.sender(request)
        if sender.number in self._receiving:  # else a node could have as many large bodies in memory as connections
            raise HTTPException(429, "one answer at a time")
        self._receiving.add(sender.number)
        try:
            content = await body_of(request, sender.verified, LARGEST_MESSAGE + _OVERHEAD)
            status = await self.writer.keep(Answer(number, sender.number, content))
        finally:
            self._receiving.discard(sender.number)
        if status != KEPT:
            why = {UNKNOWN: "no such question", TWICE: "it was answered", OVER: "it is over"}
            raise HTTPException(status, why[status])
        self.room.counters["answers"] += 1
        return Response(status_code=200)

    async def immutable(self, digest: str, request: Request) -> Response:
        """A table or catalogue, by the SHA-256 of its bytes; for everybody who knows that, and for every cache."""
        headers = {"etag": f'"{digest}"', "cache-control": "public, max-age=31536000, immutable"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(await run_in_threadpool(self._content, digest), media_type=MEDIA, headers=headers)

    def _object(self, digest: str) -> bytes:
        with self.database.reading() as connection:
            content = connection.execute(select(objects.c.content).where(objects.c.digest == digest)).scalar()
        if content is None:
            raise HTTPException(404, "no such object")
        return bytes(content)

    async def offer(self) -> Response:
        """What the newest run asks, for whoever thinks of joining; with the catalogue and the table as it is now."""
        content = await run_in_threadpool(self.offers.newest)
        if content is None:
            raise HTTPException(404, "nothing is trained here yet")
        return Response(content, media_type=MEDIA, headers={"cache-control": f"public, max-age={_OFFER_SECONDS}"})

    async def status(self, request: Request) -> Response:
        """What the server knows of the node that asks, and the digest of its current model."""
        sender = await self.senders.sender(request)
        current = await run_in_threadpool(PublishedModels(self.database).current)
        return _packed({"node": sender.number, "model": current.digest if current else ""})

    async def public_log(self, task: str) -> Response:
        """A task's log as its key has signed it, its entries, and objects with the sums behind them; for everybody."""
        published = await run_in_threadpool(public_log, self.database, task)
        if published is None:
            raise HTTPException(404, "no such task")
        return _packed(published)

    async def health(self) -> Response:
        """Whether this worker reaches its database, and could write there lately."""
        await run_in_threadpool(self.roster.version)
        if self.room.trouble:
            raise HTTPException(503, "the database takes nothing")
        return Response("ok", media_type="text/plain")

    async def metrics(self, request: Request) -> Response:
        """Prometheus' figures, for whoever has the token."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        token = self.served.metrics_token
        if not token or not hmac.compare_digest(given.encode(), token.encode()):
            raise HTTPException(401, "no token")
        text = await run_in_threadpool(render, self.database, (self._expires - time.time()) / _DAY)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def refused(self, _: Request, problem: Exception) -> Response:
        """What is said to whoever is refused."""
        assert isinstance(problem, HTTPException)
        self.room.counters[f"refused.{problem.status_code}"] += 1
        return Response(str(problem.detail), problem.status_code, media_type="text/plain")

    async def away(self, _: Request, __: Exception) -> Response:
        """What is said while the database is away."""
        self.room.counters["database_errors"] += 1
        return Response("the database doesn't answer", 503, media_type="text/plain", headers={"retry-after": "2"})

    @contextlib.asynccontextmanager
    async def looking(self, _: FastAPI) -> AsyncIterator[None]:
        """While the worker runs it looks for work, for all who wait."""
        task = asyncio.create_task(self.room.run())
        yield
        task.cancel()


class PageFiles(StaticFiles):
    """The page's files, which browsers ask for anew: an ETag says that nothing changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file."""
        response = await super().get_response(path, scope)
        response.headers.update(_PAGE_HEADERS)
        return response


def make_app(served: Served) -> FastAPI:
    """The ASGI application of one worker."""
    api = Api(served)
    app = FastAPI(title="fedrecplus", version=__version__, lifespan=api.looking, docs_url="/v1/docs", redoc_url=None,
                  openapi_url="/v1/openapi.json")  # fmt: skip
    app.state.room = api.room
    # whoever asks signs, and no cookie speaks for anybody: a page from elsewhere may ask what any program may
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST", "DELETE"],
                       allow_headers=_SIGNED, max_age=86_400)  # fmt: skip
    app.add_exception_handler(HTTPException, api.refused)
    app.add_exception_handler(SQLAlchemyError, api.away)
    for method, path, endpoint in (
        ("GET", "/v1/authority", api.authority),
        ("POST", "/v1/join", api.join),
        ("GET", "/v1/work", api.next_work),
        ("DELETE", "/v1/work", api.leave),
        ("POST", "/v1/work/{number}", api.answer),
        ("GET", "/v1/objects/{digest}", api.immutable),
        ("GET", "/v1/offer", api.offer),
        ("GET", "/v1/status", api.status),
        ("GET", "/v1/log/{task}", api.public_log),
        ("GET", "/healthz", api.health),
        ("GET", "/metrics", api.metrics),
    ):
        extra = Poll.documented() if endpoint == api.next_work else None
        shown = path != "/metrics"
        app.add_api_route(path, endpoint, methods=[method], include_in_schema=shown, openapi_extra=extra)
    if served.page is not None:
        app.mount("/", PageFiles(served.page))
    return app


def _packed(facts: object) -> Response:
    return Response(msgspec.msgpack.encode(facts), media_type=MEDIA)
