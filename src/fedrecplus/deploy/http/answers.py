"""Answers on their way into the database: those that come while others are written go together, in one transaction.

One that is written by itself waits for the disk, and on SQLite for every other writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.schema import answers, work

KEPT, UNKNOWN, TWICE, OVER = 200, 404, 409, 410
_MOST_BYTES, _MOST = 64 * 2**20, 200
"""of one transaction"""


class Answer(NamedTuple):
    """What a node sent to a question."""

    work: int
    node: int
    content: bytes


class AnswerWriter:
    """Writes a worker's answers."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._waiting: list[tuple[Answer, asyncio.Future[int]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def keep(self, answer: Answer) -> int:
        """Store an answer, if it is the first to an open question of its node; returns how it went, by HTTP's numbers.

        When this returns, it is on the disk.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return await future

    async def _write(self) -> None:
        while self._waiting:
            batch = self._next()
            try:
                statuses = await run_in_threadpool(self.stored, [answer for answer, _ in batch])
                results: list[int | Exception] = list(statuses)
            except Exception as error:  # each sender is told, and sends it again
                results = [error] * len(batch)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue  # its sender has gone
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _next(self) -> list[tuple[Answer, asyncio.Future[int]]]:
        count, size = 0, 0
        for answer, _ in self._waiting[:_MOST]:
            size += len(answer.content)
            if count and size > _MOST_BYTES:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    def stored(self, batch: Sequence[Answer]) -> list[int]:
        """What became of each answer."""
        try:
            return self._together(batch)
        except IntegrityError:  # another worker had the same one at the same time
            return [self._alone(answer) for answer in batch]

    def _together(self, batch: Sequence[Answer]) -> list[int]:
        numbers, now = {answer.work for answer in batch}, self.database.time()
        asked = work.outerjoin(answers, answers.c.work == work.c.id)
        query = select(work.c.id, work.c.node, work.c.until, answers.c.work.label("answered")).select_from(asked)
        statuses, rows = list[int](), list[dict[str, object]]()
        with self.database.changing() as connection:
            found = {row.id: row for row in connection.execute(query.where(work.c.id.in_(numbers)))}
            written = {number for number, row in found.items() if row.answered is not None}
            for answer in batch:
                row = found.get(answer.work)
                if row is None or row.node != answer.node:
                    statuses.append(UNKNOWN)
                elif row.until < now:
                    statuses.append(OVER)
                elif answer.work in written:
                    statuses.append(TWICE)
                else:
                    written.add(answer.work)
                    rows.append({"work": answer.work, "content": answer.content, "at": now})
                    statuses.append(KEPT)
            if rows:
                connection.execute(insert(answers), rows)
        return statuses

    def _alone(self, answer: Answer) -> int:
        try:
            return self._together([answer])[0]
        except IntegrityError:
            return TWICE
