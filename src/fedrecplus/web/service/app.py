"""The service's routes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from fedrecplus import __version__
from fedrecplus.errors import UserError
from fedrecplus.rates import TokenBuckets, peer_of
from fedrecplus.training import ListOptions
from fedrecplus.web.browser import LOOPBACK
from fedrecplus.web.service.docs_page import STYLE_SHEET, docs_page
from fedrecplus.web.service.guard import TOO_MANY, Guard
from fedrecplus.web.service.limits import Limits
from fedrecplus.web.service.metrics import ServiceMetrics
from fedrecplus.web.service.schema import PROMISE, ListReply, ListRequest, RequestProblem
from fedrecplus.web.service.serving import CachedAnswer, ModelSource, ServedModel
from fedrecplus.workers import core_count

log = logging.getLogger("fedrecplus.service")
_NAMED = 20
"""unknown items that an answer names"""
_JSON = "application/json"
_REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": RequestProblem, "description": text}
    for status, text in ((413, "Too large"), (415, "No JSON"), (422, "Not understood"), (429, "Too many requests"))
}
_RATINGS_PER_REQUEST = 10
"""left-out ratings whose fold-ins cost about as much as a request"""


@dataclass(frozen=True)
class ServiceOptions:
    """How a service is run."""

    names: Sequence[str] = LOOPBACK
    """names that requests may be for"""
    origins: Sequence[str] = ()
    """pages elsewhere that may ask; none unless asked"""
    limits: Limits = field(default_factory=Limits)
    poll: float = 1.0
    """seconds between two looks at the registry"""


def service(source: ModelSource, options: ServiceOptions) -> Guard:
    """The whole application, behind its guard."""
    metrics, limits = ServiceMetrics(), options.limits
    rates = TokenBuckets(limits.rate or None, limits.burst, limits.peers)
    metrics.serves(source.current)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        follower = asyncio.create_task(_follow(source, metrics, options.poll))
        yield
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower

    app = FastAPI(
        title="fedrecplus", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan, description=PROMISE
    )
    _operator_routes(app, source, metrics)
    _recommend_route(app, source, rates)
    _public_routes(app, source)  # last: it has every file of the page
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _no_route)
    if options.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["content-type"],
        )
    return Guard(app, frozenset(options.names), frozenset(options.origins), limits, rates, metrics)


async def _follow(source: ModelSource, metrics: ServiceMetrics, poll: float) -> None:
    """Take each model that becomes current. Requests that run finish with the one that they began with."""
    while True:
        await asyncio.sleep(poll)
        try:
            taken = await asyncio.to_thread(source.refresh)
        except Exception:
            log.exception("the new model is not taken")
            taken = False
        if taken is not None:
            metrics.serves(source.current)
            metrics.reloaded("done" if taken else "failed")


def _public_routes(app: FastAPI, source: ModelSource) -> None:
    @app.get("/items", summary="The items: id, title, number of ratings", response_class=Response)
    async def items(
        request: Request,
        search: Annotated[str, Query(max_length=200, description="Words of a title; none for all items.")] = "",
        limit: Annotated[int, Query(ge=1, le=1000, description="Most items that a search gives.")] = 50,
    ) -> Response:
        served = source.current
        if not search:
            return _cached(request, served.items)
        titles = await anyio.to_thread.run_sync(served.search, search, limit)
        return _json({"scale": str(served.recommender.model.scale), "items": titles})

    @app.get(
        "/model", summary="The public table: what is to know of it, its digest and provenance",
        description="Facts of the model and its tables, quantised; `/model.bin` has their codes one after the other: "
        "value = low + scale × code, by column. With it a client folds its own ratings in, and sends none.",
        response_class=Response, responses={404: {"model": RequestProblem, "description": "No such table"}},
    )  # fmt: skip
    async def model(request: Request) -> Response:
        table = source.current.table
        if table is None:
            return _problem(404, "this model has no table that pages can compute with", "", "use `/recommend`")
        return _cached(request, table)

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return file(request, "index.html")

    @app.get("/{name}", include_in_schema=False)
    async def page_file(request: Request, name: str) -> Response:
        return file(request, name)

    def file(request: Request, name: str) -> Response:
        titles = source.current.site.get(name)
        if titles is None:
            raise HTTPException(404, "there is nothing of this name")
        return _cached(request, titles)


def _operator_routes(app: FastAPI, source: ModelSource, metrics: ServiceMetrics) -> None:
    @app.get("/health", summary="Whether the service answers, and with which model")
    async def health() -> dict[str, Any]:
        served = source.current
        return {"status": "ok", "model": served.number, "digest": served.digest}

    @app.get("/metrics", summary="Counters for Prometheus", response_class=Response)
    async def counters() -> Response:
        return Response(metrics.text(), media_type=metrics.kind)

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()))

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE_SHEET, media_type="text/css")


def _recommend_route(app: FastAPI, source: ModelSource, rates: TokenBuckets) -> None:
    limiter: list[anyio.CapacityLimiter] = []

    @app.post(
        "/recommend", summary="A list for these ratings", description=PROMISE, response_model=ListReply,
        responses=_REFUSED,
    )  # fmt: skip
    async def recommend(request: Request, wanted: ListRequest) -> Response:
        if not limiter:  # belongs to the loop that runs
            limiter.append(anyio.CapacityLimiter(core_count()))
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return _problem(415, "the body is not called JSON", "", f"send Content-Type: {_JSON}")
        if wanted.why:
            seconds = rates.wait(peer_of(request.client.host if request.client else ""), _cost(wanted))
            if seconds > 0:
                refused = _problem(429, TOO_MANY, "why", "ask without reasons, or later")
                refused.headers["Retry-After"] = str(math.ceil(seconds))
                return refused
        return await anyio.to_thread.run_sync(_list, source.current, wanted, limiter=limiter[0])


def _cost(wanted: ListRequest) -> float:
    return min(len(wanted.ratings), 250) / _RATINGS_PER_REQUEST


def _list(served: ServedModel, wanted: ListRequest) -> Response:
    """The list as ``Recommender`` makes it."""
    unknown = [name for name in wanted.ratings if name not in served.known_ids]
    if unknown:
        named = ", ".join(repr(name[:50]) for name in unknown[:_NAMED])
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        return _problem(422, f"unknown items {named}{more}", "ratings", "leave them out; `/items` lists those known")
    try:
        options = ListOptions(**wanted.model_dump(exclude={"ratings"}))
        top_list = served.recommender.fold_in(wanted.ratings).top_list(options)
    except UserError as error:
        return _problem(422, error.problem, "ratings", error.remedy)
    rows = [asdict(item) for item in top_list.items]
    return _json({"model": served.digest[:32], "number": served.number, "items": rows})


async def _not_understood(request: Request, error: Exception) -> Response:
    """The first wrong field, in words, without the value that was sent."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _problem(422, "the body is no JSON", "body", "`/docs` shows what is taken")
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", ""):
        return _problem(422, "the body is not said to be JSON", "body", "send Content-Type: application/json")
    field = ".".join(str(step)[:50] for step in first["loc"] if step not in ("body", "query"))
    return _problem(422, f"{field or 'body'}: {first['msg']}", field, "`/docs` shows what is taken")


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(error.status_code, error.detail, "", "`/docs` lists the routes")


def _problem(status: int, problem: str, field: str, remedy: str) -> Response:
    return _json({"problem": problem, "field": field, "remedy": remedy}, status)


def _json(content: Any, status: int = 200) -> Response:
    # ASCII: half a surrogate pair in what somebody sent has no UTF-8
    return Response(json.dumps(content), status, {"Cache-Control": "no-store"}, _JSON)


def _cached(request: Request, answer: CachedAnswer) -> Response:
    """An answer that browsers keep: they ask whether it is still the same."""
    headers = {"ETag": answer.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    if answer.tag in known:
        return Response(status_code=304, headers=headers)
    offered = (part.partition(";")[0].strip() for part in request.headers.get("accept-encoding", "").split(","))
    if "gzip" in offered:
        return Response(answer.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=answer.kind)
    return Response(answer.content, headers=headers, media_type=answer.kind)
