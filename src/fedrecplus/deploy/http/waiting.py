"""Devices that wait for work on this worker: one question to the database serves them all."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter

from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.server.database import FAILED, Database
from fedrecplus.deploy.server.presence import BEAT, say_present
from fedrecplus.deploy.server.schema import answers, work

log = logging.getLogger("fedrecplus")
_LOOK, _LONGEST_LOOK = 0.1, 1.0
"""seconds between looks for work; longer where a look takes its time"""
_GRACE = 10.0
"""seconds between two polls of a node that is still here: it may be computing, or on its way"""
_BETWEEN_WORDS = 0.5
"""seconds between two words on who is here, where that changes"""
_MOST_IN_QUERY = 500


class Displaced(Exception):
    """The same node asked anew, on another connection: this one is dead, or another process has the node's key."""


class WaitingRoom:
    """Who waits here, and who was here lately."""

    def __init__(self, database: Database, name: str) -> None:
        self.database, self.name = database, name
        self.counters: Counter[str] = Counter()
        self._waiting: dict[int, tuple[int, asyncio.Future[bytes | None]]] = {}
        """node → the last question that it has, and where the next one goes"""
        self._here: dict[int, float] = {}
        """node → until when it counts as present, if it doesn't wait"""
        self._said: tuple[frozenset[int], float] = (frozenset(), 0.0)
        self._say_at = 0.0
        self._ended = False
        self.trouble = ""
        """why the last look for work, or the last word on who is here, failed"""

    async def next_question(self, node: int, after: int, seconds: float, away: float = 0.0) -> bytes | None:
        """The newest open question of a node that comes after another; None where none comes in so many seconds.

        ``Displaced`` where the node asks anew meanwhile.
        """
        if self._ended:  # who was on the way when the others were let go
            return None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes | None] = loop.create_future()
        earlier = self._waiting.pop(node, None)
        if earlier is not None and not earlier[1].done():
            earlier[1].set_exception(Displaced)
        self._waiting[node] = (after, future)
        over = loop.call_later(seconds, _nothing_came, future)
        try:
            content = await future
            self.counters["idle_polls"] += content is None
            return content
        finally:
            over.cancel()
            if self._waiting.get(node, (0, None))[1] is future:
                del self._waiting[node]
                self._here[node] = time.monotonic() + max(_GRACE, away)

    def leave(self, node: int) -> None:
        """A node that goes doesn't count as present any more."""
        earlier = self._waiting.pop(node, None)
        if earlier is not None and not earlier[1].done():
            earlier[1].set_result(None)
        self._here.pop(node, None)

    def end(self) -> None:
        """Let everybody go, and whoever comes yet: the worker ends, and devices go on with the next one."""
        self._ended = True
        for _, future in self._waiting.values():
            _nothing_came(future)

    async def run(self) -> None:
        """Look for work, and say who is here, until the worker ends."""
        pause = _LOOK
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                if self._waiting:
                    await self._look()
                await self._say()
            except FAILED as error:
                self.trouble = self.database.is_away(error)
            except Exception as error:  # whatever it is: nobody would get a question any more
                log.exception("the look for work failed")
                self.trouble = type(error).__name__
            else:
                self.database.is_back()
                self.trouble = ""
            if self.trouble:
                self.counters["database_errors"] += 1
                pause = _LONGEST_LOOK
                continue
            pause = min(max(_LOOK, 3 * (time.monotonic() - began)), _LONGEST_LOOK)

    async def _look(self) -> None:
        newest = await run_in_threadpool(self._open_questions)
        due = {
            number: node for node, number in newest.items() if node in self._waiting and number > self._waiting[node][0]
        }
        contents = await run_in_threadpool(self._contents, sorted(due)) if due else {}
        for number, content in contents.items():
            _, future = self._waiting.get(due[number], (0, None))
            if future is not None and not future.done():
                future.set_result(content)

    def _open_questions(self) -> dict[int, int]:
        """Node → its newest question that nobody has answered."""
        unanswered = work.outerjoin(answers, answers.c.work == work.c.id)
        query = select(work.c.node, func.max(work.c.id)).select_from(unanswered)
        query = query.where(answers.c.work.is_(None) & (work.c.until > self.database.time())).group_by(work.c.node)
        with self.database.reading() as connection:
            return {int(node): int(number) for node, number in connection.execute(query)}

    def _contents(self, numbers: list[int]) -> dict[int, bytes]:
        contents: dict[int, bytes] = {}
        with self.database.reading() as connection:
            for first in range(0, len(numbers), _MOST_IN_QUERY):
                some = numbers[first : first + _MOST_IN_QUERY]
                query = select(work.c.id, work.c.question).where(work.c.id.in_(some))
                contents.update({int(number): bytes(content) for number, content in connection.execute(query)})
        return contents

    async def _say(self) -> None:
        """Write who is here, where that is news or the last word is old."""
        now = time.monotonic()
        if now < self._say_at:  # of thousands of devices somebody comes or goes at each look
            return
        self._say_at = now + _BETWEEN_WORDS
        self._here = {node: until for node, until in self._here.items() if until > now}
        present = frozenset(self._waiting) | frozenset(self._here)
        before, at = self._said
        if present == before and now - at < BEAT:
            return
        await run_in_threadpool(say_present, self.database, self.name, present, dict(self.counters))
        self._said = (present, now)


def _nothing_came(future: asyncio.Future[bytes | None]) -> None:
    if not future.done():
        future.set_result(None)
