"""The app's messages to nodes and their replies: two of the Runtime API's calls, with all objects along.

The app is asked for the token of its task by the gate; here the task is looked up once more, as Flower does.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from fedrecplus.deploy.flower import attached, private
from fedrecplus.deploy.flower.limits import LONGEST
from fedrecplus.deploy.flower.long_polling import LongPolling
from fedrecplus.deploy.flower.respond import Unserved, body_of, respond

_PREFIX = "/v1/runtime/"
PATHS = (_PREFIX + "push-messages", _PREFIX + "pull-messages")
TOKEN = b"flwr-task-token"
LONGEST_OF_APP = 2 * LONGEST
log = logging.getLogger("fedrecplus")


class AppMessages:
    """The ASGI endpoint of ``PATHS``."""

    def __init__(self, state: Any, polling: LongPolling) -> None:
        self._state, self._polling = state, polling

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        content = await body_of(headers, receive, LONGEST_OF_APP)
        pushes = scope["path"].endswith("push-messages")
        kind = "PushAppMessagesRequest" if pushes else "PullAppMessagesRequest"
        request = private.get(f"flwr.proto.runtime_pb2.{kind}")()
        try:
            request.ParseFromString(content)
        except Exception:
            raise Unserved(400, "malformed") from None
        facts = attached.objects_in(attached.APP_ASKS, content) if pushes else {}
        task = self._state.get_task_by_token(headers.get(TOKEN, b"").decode("latin-1"))
        if task is None:
            raise Unserved(401, "no task")
        try:
            if pushes:
                reply = attached.push_from_app(self._state, request, task, facts)
                self._polling.wake()
            else:
                reply = attached.pull_for_app(self._state, request, task)
        except ValueError as error:
            log.warning("%s: %s", scope["path"], error)
            await respond(send, 400, json.dumps({"detail": str(error)}).encode(), b"application/json")
            return
        await respond(send, 200, reply, b"application/protobuf")
