"""Nodes that wait for messages: a look for work is answered when there is some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fedrecplus.deploy.flower.memory import undelivered

_LOOK = 0.2
"""seconds between looks while nodes wait, where nobody says that something came"""


class LongPolling:
    """Requests that wait for work. One look at the messages serves all of them."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def has_work(self, node: int, seconds: float, gone: Callable[[], Awaitable[Any]] | None = None) -> bool:
        """Whether a node has a message, now or within so many seconds; ``gone`` returns when it hangs up."""
        if undelivered(self._state, time.time(), [node]):
            return True
        if seconds <= 0.0:
            return False
        came: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._answer(node, False)  # an older request of the same node, whose connection is gone by now
        self._waiting[node] = came
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        events: set[asyncio.Future[Any]] = {came}
        if gone is not None:
            events.add(asyncio.ensure_future(gone()))
        try:
            await asyncio.wait(events, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return came.done() and came.result()
        finally:
            for event in events:
                event.cancel()
            if self._waiting.get(node) is came:
                del self._waiting[node]

    def wake(self) -> None:
        """Answer those who have a message."""
        for node in undelivered(self._state, time.time(), self._waiting):
            self._answer(node, True)

    async def _watch(self) -> None:
        while self._waiting:
            await asyncio.sleep(_LOOK)
            self.wake()

    def _answer(self, node: int, has_work: bool) -> None:
        if (came := self._waiting.pop(node, None)) is not None and not came.done():
            came.set_result(has_work)
