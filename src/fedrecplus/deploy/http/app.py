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
from typing import Annotated

import msgspec
from fastapi import FastAPI, Query, Request, Response
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from fedrecplus import __version__
from fedrecplus.deploy.http.answers import KEPT, OVER, TWICE, UNKNOWN, Answer, AnswerWriter
from fedrecplus.deploy.http.metrics import render
from fedrecplus.deploy.http.offer import Offers
from fedrecplus.deploy.http.page import PageFiles
from fedrecplus.deploy.http.senders import Senders, body_of
from fedrecplus.deploy.http.waiting import Displaced, WaitingRoom
from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.published import PublishedModels
from fedrecplus.deploy.server.roster import Roster
from fedrecplus.deploy.server.schema import objects
from fedrecplus.deploy.server.task_log import entries_of, head_of
from fedrecplus.deploy.wire.log import LogHead
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


class Enrolment(msgspec.Struct):
    """What a stranger sends to join."""

    code: str
    name: str = ""


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


def make_app(served: Served) -> FastAPI:
    """The ASGI application of one worker."""
    database, roster = served.database, Roster(served.database)
    room, senders, writer = WaitingRoom(database, served.name), Senders(roster), AnswerWriter(database)
    offers, receiving = Offers(database), set[int]()
    joins, wrong = TokenBuckets(_JOINS_PER_SECOND, _JOINS_AT_ONCE), TokenBuckets(_WRONG_PER_SECOND, _WRONG_AT_ONCE)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        looking = asyncio.create_task(room.run())
        yield
        looking.cancel()

    app = FastAPI(title="fedrecplus", version=__version__, lifespan=lifespan, docs_url="/v1/docs", redoc_url=None,
                  openapi_url="/v1/openapi.json")  # fmt: skip
    app.state.room = room

    # whoever asks signs, and no cookie speaks for anybody: a page from elsewhere may ask what any program may
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST", "DELETE"],
                       allow_headers=_SIGNED, max_age=86_400)  # fmt: skip

    @app.exception_handler(HTTPException)
    async def refused(_: Request, problem: HTTPException) -> Response:
        room.counters[f"refused.{problem.status_code}"] += 1
        return Response(str(problem.detail), problem.status_code, media_type="text/plain")

    @app.exception_handler(SQLAlchemyError)
    async def away(_: Request, __: SQLAlchemyError) -> Response:
        room.counters["database_errors"] += 1
        return Response("the database doesn't answer", 503, media_type="text/plain", headers={"retry-after": "2"})

    @app.get("/v1/authority")
    async def authority() -> Response:
        """The certificate of the authority that an invitation names by its fingerprint."""
        if not served.authority:
            raise HTTPException(404, "this server has a public certificate")
        return Response(served.authority, media_type="application/x-pem-file")

    @app.post("/v1/join")
    async def join(request: Request) -> Response:
        """Join by an invitation's code; signed with the key that is to be admitted."""
        if not joins.take(peer_of(request.client.host if request.client else "")):
            raise HTTPException(429, "too many tries")
        verified = senders.key_of(request)
        try:
            said = msgspec.msgpack.decode(await body_of(request, verified, _LONGEST_CODE), type=Enrolment)
        except (msgspec.MsgspecError, ValueError):
            raise HTTPException(400, "malformed") from None
        known = await run_in_threadpool(roster.enrol, said.code, bytes.fromhex(verified.key), said.name)
        if known is None:
            if not wrong.take("all"):
                raise HTTPException(429, "too many tries")
            raise HTTPException(403, "no such invitation, or it was used, or has expired")
        room.counters["enrolled"] += 1
        return _packed({"node": known[0], "name": known[1]})

    @app.get("/v1/work")
    async def next_work(
        request: Request,
        wait: Annotated[float, Query(ge=0.0, le=3600.0, description="seconds to hold the answer")] = 0.0,
        after: Annotated[int, Query(ge=0, description="the last question that was dealt with")] = 0,
        away: Annotated[float, Query(ge=0.0, description="seconds to the next visit, if this is the last one")] = 0.0,
    ) -> Response:
        """The next question for the node that signed this; 204 where none came. Who is away is asked all the same."""
        sender = await senders.sender(request)
        seconds = min(max(wait, 0.01), _LONGEST_WAIT)
        try:
            content = await room.next_question(sender.number, after, seconds, min(away, _LONGEST_AWAY))
        except Displaced:
            raise HTTPException(409, "another process asks with this node's key: is this home a copy?") from None
        return Response(status_code=204) if content is None else Response(content, media_type=MEDIA)

    @app.delete("/v1/work")
    async def leave(request: Request) -> Response:
        """The node that signed this goes: nobody waits for it."""
        room.leave((await senders.sender(request)).number)
        return Response(status_code=204)

    @app.post("/v1/work/{number}")
    async def answer(number: int, request: Request) -> Response:
        """The sealed answer to a question; one for each."""
        sender = await senders.sender(request)
        if sender.number in receiving:  # else one node could have as many large bodies in memory as it has connections
            raise HTTPException(429, "one answer at a time")
        receiving.add(sender.number)
        try:
            content = await body_of(request, sender.verified, LARGEST_MESSAGE + _OVERHEAD)
            status = await writer.keep(Answer(number, sender.number, content))
        finally:
            receiving.discard(sender.number)
        if status != KEPT:
            why = {UNKNOWN: "no such question", TWICE: "it was answered", OVER: "it is over"}
            raise HTTPException(status, why[status])
        room.counters["answers"] += 1
        return Response(status_code=200)

    @app.get("/v1/objects/{digest}")
    async def immutable(digest: str, request: Request) -> Response:
        """A table or catalogue, by the SHA-256 of its bytes; for everybody who knows that, and for every cache."""
        headers = {"etag": f'"{digest}"', "cache-control": "public, max-age=31536000, immutable"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(await run_in_threadpool(object_content, digest), media_type=MEDIA, headers=headers)

    @functools.lru_cache(maxsize=_RECENT)
    def object_content(digest: str) -> bytes:
        with database.reading() as connection:
            content = connection.execute(select(objects.c.content).where(objects.c.digest == digest)).scalar()
        if content is None:
            raise HTTPException(404, "no such object")
        return bytes(content)

    @app.get("/v1/offer")
    async def offer() -> Response:
        """What the newest run asks, for whoever thinks of joining; with the catalogue and the table as it is now."""
        content = await run_in_threadpool(offers.newest)
        if content is None:
            raise HTTPException(404, "nothing is trained here yet")
        return Response(content, media_type=MEDIA, headers={"cache-control": f"public, max-age={_OFFER_SECONDS}"})

    @app.get("/v1/status")
    async def status(request: Request) -> Response:
        """What the server knows of the node that asks, and the digest of its current model."""
        sender = await senders.sender(request)
        current = await run_in_threadpool(PublishedModels(database).current)
        return _packed({"node": sender.number, "model": current.digest if current else ""})

    @app.get("/v1/log/{task}")
    async def public_log(task: str) -> Response:
        """A task's log as its key has signed it, its entries, and objects with the sums behind them; for everybody."""
        head, (entries, sums) = await run_in_threadpool(log_of, task)
        if head is None:
            raise HTTPException(404, "no such task")
        leaves = b"".join(head.leaves)
        return _packed({"leaves": leaves, "signature": head.signature, "entries": entries, "sums": sums})

    def log_of(task: str) -> tuple[LogHead | None, tuple[list[str], list[str]]]:
        with database.reading() as connection:
            head = head_of(connection, task)
        return head, entries_of(database, task)

    @app.get("/healthz")
    async def health() -> Response:
        """Whether this worker reaches its database, and could write there lately."""
        await run_in_threadpool(roster.version)
        if room.trouble:
            raise HTTPException(503, "the database takes nothing")
        return Response("ok", media_type="text/plain")

    expires = time.time() + _DAY * served.certificate_days  # of the certificate that this worker has read

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not served.metrics_token or not hmac.compare_digest(given.encode(), served.metrics_token.encode()):
            raise HTTPException(401, "no token")
        text = await run_in_threadpool(render, database, (expires - time.time()) / _DAY)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    if served.page is not None:
        app.mount("/", PageFiles(served.page))
    return app


def _packed(facts: dict[str, object]) -> Response:
    return Response(msgspec.msgpack.encode(facts), media_type=MEDIA)
