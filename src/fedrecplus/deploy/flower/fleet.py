"""Flower's Fleet API, what nodes talk to: its handlers behind authentication that reads no body first.

Flower passes each request through nine layers, reads and parses all of its body, and then looks at the signature: 9 ms
and any memory for whoever reaches the port. Here a key that wasn't admitted is refused by the headers alone, and a
signed request goes straight to Flower's handler. A look for work that finds none touches no database: what waits for
whom is read for all nodes at once. With ``x-fedrecplus-wait: SECONDS`` such a look waits for work instead.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import logging
import sqlite3
import time
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.flower.connections import note_known
from fedrecplus.deploy.flower.counters import COUNTERS
from fedrecplus.deploy.flower.limits import (
    BYTES_AT_ONCE,
    BYTES_PER_SECOND,
    LONGEST,
    REQUESTS_AT_ONCE,
    REQUESTS_PER_SECOND,
    SHORT,
    Buckets,
)
from fedrecplus.deploy.flower.respond import Unserved, body_of, respond

PREFIX = "/v1/fleet/"
WAIT_HEADER, LONGEST_WAIT = b"x-fedrecplus-wait", 50.0
_HANDLERS = "flwr.superlink.servicer.fleet.fleet_handlers."
_LOOK, _FRESH = 0.2, 0.05
"""seconds between looks while nodes wait, and for which a look is good"""
_TRIES, _PAUSE = 5, 0.2
_UNDELIVERED = (
    "SELECT DISTINCT dst_node_id FROM message_ins WHERE delivered_at = '' AND created_at + ttl > ? "
    "AND message_id NOT IN (SELECT root_object_id FROM object_push_session_roots)"
)
"""messages whose contents are all here: who fetches one before that gives up on it"""
log = logging.getLogger("fedrecplus")


class FleetApi:
    """The ASGI endpoint of all paths below ``PREFIX``."""

    def __init__(self, numbers: Callable[[bytes], int | None], state: Any, *, keyed: bool) -> None:
        self._number_of, self._state, self._keyed = numbers, state, keyed
        self._rates = Buckets(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)
        self._stores = Buckets(BYTES_PER_SECOND, BYTES_AT_ONCE)
        self._mail = Mail(state)
        types = private.get("flwr.supercore.protobuf.translation.PROTOBUF_REQUEST_TYPES")
        names = [path.removeprefix(PREFIX) for _, path in types if path.startswith(PREFIX)]
        self._calls = {name: types["POST", PREFIX + name] for name in names}
        self._flower_error = private.get("flwr.supercore.error.FlowerError")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        name = scope["path"].removeprefix(PREFIX)
        try:
            if scope["method"] != "POST" or name not in self._calls:
                raise Unserved(404, "no such call")
            headers = dict(scope["headers"])
            key, number = await self.authenticate(headers, name)
            note_known(scope.get("client"))
            if not self._rates.take(key):
                raise Unserved(429, "too many requests")
            content = await body_of(headers, receive, LONGEST if name == "push-object" else SHORT)
            if name == "push-object" and not self._stores.take(key, len(content)):
                raise Unserved(429, "too many bytes")
            request = self._parse(name, content, key, number)
            if name == "pull-messages" and not await self._mail.waits(request.node.node_id, _seconds(headers)):
                COUNTERS.idle_polls += 1
                await respond(send, 200, b"", b"application/protobuf")
                return
            reply = await run_in_threadpool(self._call, name, request)
            if name == "activate-node":
                COUNTERS.activations += 1
            await respond(send, 200, reply.SerializeToString(), b"application/protobuf")
        except Unserved as refused:
            COUNTERS.refuse(refused.why)
            await refused.answer(send)
        except self._flower_error as error:
            spec = private.get("flwr.supercore.error.catalog.API_ERROR_MAP")[error.code]
            log.warning("%s: Flower's error %s: %s", scope["path"], error.code, error.message)
            content = json.dumps(error.to_json(spec.public_message)).encode()
            await respond(send, spec.http_status_code, content, b"application/json")
        except Exception:
            COUNTERS.refuse("fault")
            log.exception("%s failed", scope["path"])
            await respond(send, 500, b'{"detail": "internal error"}', b"application/json")

    async def authenticate(self, headers: dict[bytes, bytes], name: str) -> tuple[bytes, int | None]:
        """The key and the number of who has signed the request's time, before anything of its body is read."""
        try:
            key = b64decode(headers[b"flwr-public-key"], validate=True)
            signature = b64decode(headers[b"flwr-signature"], validate=True)
            stamp = headers[b"flwr-timestamp"].decode("ascii")
            age = (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()
        except (KeyError, ValueError, TypeError, UnicodeError, binascii.Error):
            raise Unserved(401, "no signature") from None
        if len(key) > 1024 or len(signature) > 256:
            raise Unserved(401, "no signature")
        number = self._number_of(key)
        if number is None and not self._keyed:
            number = await run_in_threadpool(self._state.get_node_id_by_public_key, key)
        if number is None and (self._keyed or name not in ("register-node", "activate-node")):
            raise Unserved(401, "unknown key")
        tolerance = private.get("flwr.common.constant.SYSTEM_TIME_TOLERANCE")
        if not -tolerance < age < private.get("flwr.common.constant.TIMESTAMP_TOLERANCE") + tolerance:
            raise Unserved(401, "old signature")
        check = private.get("flwr.supercore.primitives.asymmetric.verify_signature")
        try:
            public = private.get("flwr.supercore.primitives.asymmetric.bytes_to_public_key")(key)
            sound = check(public, stamp.encode("ascii"), signature)
        except (ValueError, TypeError, AttributeError):
            sound = False
        if not sound:
            raise Unserved(401, "wrong signature")
        return key, number

    def _parse(self, name: str, content: bytes, key: bytes, number: int | None) -> Any:
        """The request in a body, if it speaks for who has signed it."""
        request = self._calls[name]()
        try:
            request.ParseFromString(content)
        except Exception:
            raise Unserved(400, "malformed") from None
        if name in ("register-node", "activate-node"):
            same = request.public_key == key
        else:
            claimed = request.node.node_id if hasattr(request, "node") else request.node_id
            same = number is not None and claimed == number
        if not same:
            raise Unserved(401, "another node's number")
        if name == "push-messages" and not _is_own(request, number):
            raise Unserved(401, "another node's number")
        return request

    def _call(self, name: str, request: Any) -> Any:
        """Flower's handler. A database that is locked is asked again: nodes don't repeat a push."""
        handler = private.get(_HANDLERS + name.replace("-", "_"))
        more = {"state": self._state}
        if name in ("pull-messages", "confirm-message-received"):
            more["store"] = self._state.object_store
        if name in ("register-node", "unregister-node"):
            more["enable_supernode_auth"] = self._keyed
        if name == "activate-node":
            self._release(request.public_key)
        for left in reversed(range(_TRIES)):
            try:
                return handler(request=request, **more)
            except Exception as error:
                if "database is locked" not in str(error) or not left:
                    raise
                COUNTERS.locked += 1
                time.sleep(_PAUSE)
        raise AssertionError

    def _release(self, key: bytes) -> None:
        """A node that comes anew was killed: Flower would refuse its key until it believes that."""
        number = self._state.get_node_id_by_public_key(key)
        if number is not None:
            self._state.deactivate_node(number)


def _is_own(request: Any, number: int | None) -> bool:
    """Whether all messages are from who pushes them."""
    return all(message.metadata.src_node_id == number for message in request.messages_list)


def _seconds(headers: dict[bytes, bytes]) -> float:
    """How long a look for work may wait."""
    text = headers.get(WAIT_HEADER, b"0")
    return min(float(text), LONGEST_WAIT) if text.replace(b".", b"", 1).isdigit() else 0.0


class Mail:
    """Who has messages to pull: one query for everybody, not one for each look."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._nodes: set[int] = set()
        self._at = -1e9
        self._looking: asyncio.Task[None] | None = None
        self._reading: sqlite3.Connection | None = None

    async def waits(self, node: int, seconds: float) -> bool:
        """Whether a node has mail, now or within so many seconds."""
        end = time.monotonic() + seconds
        while True:
            await self._look()
            if node in self._nodes:
                self._nodes.discard(node)  # it is about to be fetched
                return True
            if time.monotonic() >= end:
                return False
            await asyncio.sleep(_LOOK)

    async def _look(self) -> None:
        if time.monotonic() - self._at < _FRESH:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._read())
        await asyncio.shield(self._looking)

    async def _read(self) -> None:
        rows = await run_in_threadpool(self._rows)
        self._nodes, self._at = {row[0] % 2**64 for row in rows}, time.monotonic()

    def _rows(self) -> list[tuple[int]]:
        if self._reading is None:  # a connection that only reads waits for nobody, and nobody for it
            path = str(self._state._engine.url.database)
            self._reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False, timeout=30.0)
        return self._reading.execute(_UNDELIVERED, (time.time(),)).fetchall()
