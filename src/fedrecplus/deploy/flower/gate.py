"""What stands before Flower's HTTP app: who may call what, decided by headers alone.

| paths | who |
|---|---|
| `/v1/fleet/` | nodes that sign with a key that was admitted (``fleet.py``) |
| `/v1/server/` | this machine, with the token of the server's home (``operations.py``) |
| `/v1/runtime/` | this machine: the helper with its secret, the app with the token of its task |
| `/health` | everybody |

Everything else is refused, Flower's Control API too.
"""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.flower import app_messages, operations
from fedrecplus.deploy.flower.counters import COUNTERS
from fedrecplus.deploy.flower.respond import Unserved, check_length
from fedrecplus.deploy.process import is_loopback

_RUNTIME, _HELPERS = "/v1/runtime/", "/v1/runtime/acquire-task"
_SHORT = 64 * 2**10


class Gate:
    """The outermost ASGI middleware. ``apis`` answer themselves, by the beginning of a path; ``messages`` the app's."""

    def __init__(self, app: Any, state: Any, apis: dict[str, Any], messages: Any) -> None:
        self.app, self._state, self._apis, self._messages = app, state, apis, messages
        self._tasks: set[bytes] = set()
        """tokens of tasks that are running; Flower looks itself once more"""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on, answer, or refuse."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets: nobody needs them
            await send({"type": "websocket.close", "code": 1000})
            return
        try:
            app = await self._app_of(scope)
            await app(scope, receive, send)
        except Unserved as refused:
            COUNTERS.refuse(refused.why)
            await refused.answer(send)

    async def _app_of(self, scope: Any) -> Any:
        """Who answers a request; raises ``Unserved`` where nobody does."""
        path, headers = scope["path"], dict(scope["headers"])
        for prefix, app in self._apis.items():
            if path.startswith(prefix):
                COUNTERS.requests[prefix] += 1
                if prefix == operations.PREFIX:
                    _demand_loopback(scope)
                return app
        if path == "/health":
            check_length(headers, 0)
            return self.app
        if path.startswith(_RUNTIME):
            COUNTERS.requests[_RUNTIME] += 1
            _demand_loopback(scope)
            await self._demand_task(path, headers)
            return self._messages if path in app_messages.PATHS else self.app
        raise Unserved(403, "not for you")

    async def _demand_task(self, path: str, headers: dict[bytes, bytes]) -> None:
        if path == _HELPERS:
            check_length(headers, _SHORT)  # its signature covers the body, so Flower reads that first
            return
        token = headers.get(app_messages.TOKEN, b"")
        if token not in self._tasks:
            task = await run_in_threadpool(self._state.get_task_by_token, token.decode("latin-1")) if token else None
            if task is None:
                raise Unserved(401, "no task")
            self._tasks = {*list(self._tasks)[-15:], token}
        check_length(headers, app_messages.LONGEST_OF_APP)


def _demand_loopback(scope: Any) -> None:
    caller = (scope.get("client") or ("",))[0]
    if not is_loopback(caller.removeprefix("::ffff:")):
        raise Unserved(403, "only from the server itself")
