"""Flower's Fleet API, what nodes talk to: its handlers behind authentication that reads no body first.

Flower passes each request through nine layers, reads and parses all of its body, and then looks at the signature: 9 ms
and any memory for whoever reaches the port. Here a key that wasn't admitted is refused by the headers alone, and a
signed request goes straight to Flower's handler, which looks into memory alone and takes less time than a thread would
take to begin. With ``x-fedrecplus-wait: SECONDS`` a look for work that finds none waits for it.
"""

from __future__ import annotations

import binascii
import json
import logging
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from fedrecplus.deploy.flower import attached, private
from fedrecplus.deploy.flower.connections import note_known
from fedrecplus.deploy.flower.counters import COUNTERS
from fedrecplus.deploy.flower.limits import (
    BYTES_AT_ONCE,
    BYTES_PER_SECOND,
    LONGEST,
    REQUESTS_AT_ONCE,
    REQUESTS_PER_SECOND,
    SHORT,
)
from fedrecplus.deploy.flower.long_polling import LongPolling
from fedrecplus.deploy.flower.respond import Unserved, body_of, respond
from fedrecplus.deploy.light import ATTACHED
from fedrecplus.rates import TokenBuckets

PREFIX = "/v1/fleet/"
WAIT_HEADER, LONGEST_WAIT = b"x-fedrecplus-wait", 50.0
_HANDLERS = "flwr.superlink.servicer.fleet.fleet_handlers."
_STORES = ("push-object", "push-messages")
"""calls that bring what is to be kept"""
log = logging.getLogger("fedrecplus")


class FleetApi:
    """The ASGI endpoint of all paths below ``PREFIX``."""

    def __init__(
        self, numbers: Callable[[bytes], int | None], state: Any, polling: LongPolling, *, keyed: bool
    ) -> None:
        self._number_of, self._state, self._polling, self._keyed = numbers, state, polling, keyed
        self._rates = TokenBuckets(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE)
        self._stores = TokenBuckets(BYTES_PER_SECOND, BYTES_AT_ONCE)
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
            note_known(scope.get("client"), key)
            if not self._rates.take(key):
                raise Unserved(429, "too many requests")
            content = await body_of(headers, receive, LONGEST if name in _STORES else SHORT)
            if name in _STORES and not self._stores.take(key, len(content)):
                raise Unserved(429, "too many bytes")
            along = b""
            if name == "push-messages":
                content, along = attached.apart(ATTACHED[name][0], content, SHORT)
            request = self._parse(name, content, key, number)
            wait = _seconds(headers)  # the next event of a request that is read is that its connection is gone
            if name == "pull-messages" and not await self._polling.has_work(request.node.node_id, wait, receive):
                COUNTERS.idle_polls += 1
                await respond(send, 200, b"", b"application/protobuf")
                return
            if self._keyed and self._number_of(key) != number:
                raise Unserved(401, "unknown key")  # it was expelled, or has a new key, while it waited
            facts = {}
            if name == "push-messages":
                facts = attached.objects_in(ATTACHED[name][0], along, most=attached.MOST_FIELDS)
            reply = self._call(name, request, facts)
            if name == "activate-node":
                COUNTERS.activations += 1
            await respond(send, 200, reply, b"application/protobuf")
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
            number = self._state.get_node_id_by_public_key(key)
        if number is None and (self._keyed or name not in ("register-node", "activate-node")):
            raise Unserved(401, "unknown key")
        tolerance = private.get("flwr.common.constant.SYSTEM_TIME_TOLERANCE")
        if not -tolerance < age < private.get("flwr.common.constant.TIMESTAMP_TOLERANCE") + tolerance:
            raise Unserved(401, "old signature")
        check = private.get("flwr.supercore.primitives.asymmetric.verify_signature")
        try:
            sound = check(_public_key(key), stamp.encode("ascii"), signature)
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

    def _call(self, name: str, request: Any, facts: dict[str, Any]) -> bytes:
        """What Flower's handler says, with the objects that go along."""
        if not _runs_of(request) <= self._state.run_ids.keys():
            raise Unserved(403, "no such run")  # the server was restarted since: the node is to give its answer up
        if name == "pull-messages":
            return attached.pull_for_node(self._state, request)
        if name == "push-messages":
            return attached.push_from_node(self._state, request, facts)
        more = {"state": self._state}
        if name == "confirm-message-received":
            if not attached.is_asked(self._state, request.node.node_id, request.message_object_id):
                return b""  # another's, or one that is done; its objects are pruned
            more["store"] = self._state.object_store
        if name in ("register-node", "unregister-node"):
            more["enable_supernode_auth"] = self._keyed
        if name == "activate-node":
            self._release(request.public_key)
        return bytes(private.get(_HANDLERS + name.replace("-", "_"))(request=request, **more).SerializeToString())

    def _release(self, key: bytes) -> None:
        """A node that comes anew was killed: Flower would refuse its key until it believes that."""
        number = self._state.get_node_id_by_public_key(key)
        if number is not None:
            self._state.deactivate_node(number)


@lru_cache(maxsize=10_000)
def _public_key(key: bytes) -> Any:
    """A key that was admitted, read once."""
    return private.get("flwr.supercore.primitives.asymmetric.bytes_to_public_key")(key)


def _runs_of(request: Any) -> set[int]:
    """The runs that a request is about."""
    runs = {message.metadata.run_id for message in getattr(request, "messages_list", ())}
    return runs | {request.run_id} if hasattr(request, "run_id") else runs


def _is_own(request: Any, number: int | None) -> bool:
    """Whether all messages are from who pushes them."""
    return all(message.metadata.src_node_id == number for message in request.messages_list)


def _seconds(headers: dict[bytes, bytes]) -> float:
    """How long a look for work may wait."""
    text = headers.get(WAIT_HEADER, b"0")
    return min(float(text), LONGEST_WAIT) if text.replace(b".", b"", 1).isdigit() else 0.0
