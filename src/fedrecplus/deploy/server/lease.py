"""One coordinator at a time: a lease in the database, whose number goes up with every holder.

Whoever writes as the coordinator says its number in the same transaction. A coordinator that slept past its lease finds
a greater number there, and nothing of what it wanted to write is written.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from fedrecplus.deploy.server.database import FAILED, Database
from fedrecplus.deploy.server.schema import leases

log = logging.getLogger("fedrecplus")
SECONDS = 10.0
"""that a lease lasts without a renewal"""
_NAME = "coordinator"


class LeaseLost(Exception):
    """Another process coordinates now."""


class Lease:
    """The right to coordinate."""

    def __init__(self, database: Database, seconds: float = SECONDS) -> None:
        self.database, self.seconds, self.number = database, seconds, 0
        self.holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._ended = threading.Event()
        self._seen, self._seen_at = (0, 0.0), 0.0

    def take(self) -> bool:
        """Take it where nobody has it, or the last holder's time is up, or it was long seen to renew nothing.

        The last is for clocks: a holder whose clock was a day ahead would else be waited for until tomorrow.
        """
        now = self.database.time()
        try:
            with self.database.changing() as connection:
                row = connection.execute(select(leases).where(leases.c.name == _NAME).with_for_update()).first()
                if row is not None and row.until > now and not self._stands_still(int(row.number), float(row.until)):
                    return False
                number = 1 if row is None else int(row.number) + 1
                facts = {"holder": self.holder, "number": number, "until": now + self.seconds}
                if row is None:
                    connection.execute(insert(leases).values(name=_NAME, **facts))
                else:
                    connection.execute(update(leases).where(leases.c.name == _NAME).values(**facts))
        except IntegrityError:  # somebody else was the first ever
            return False
        self.number = number
        self._ended.clear()
        return True

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Renew it in the background until the block ends, then let it go."""
        keeper = threading.Thread(target=self._renew, daemon=True)
        keeper.start()
        try:
            yield
        finally:
            self._ended.set()
            keeper.join()
            with contextlib.suppress(*FAILED), self.database.changing() as connection:
                connection.execute(update(leases).where(self._own).values(until=0.0))

    @contextlib.contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction of the coordinator's; ``LeaseLost``, and nothing written, where it is another one by now."""
        with self.database.changing() as connection:
            self.check(connection, hold=True)
            yield connection

    def check(self, connection: Connection, *, hold: bool = False) -> None:
        """Refuse to go on where another process holds the lease; with ``hold`` none takes it in this transaction."""
        query = select(leases.c.number).where(self._own)
        if connection.execute(query.with_for_update() if hold else query).first() is None:
            raise LeaseLost(f"lease {self.number} is over")

    def _stands_still(self, number: int, until: float) -> bool:
        """Whether nobody renewed it for twice its time, by this process's own clock."""
        if (number, until) != self._seen:
            self._seen, self._seen_at = (number, until), time.monotonic()
        return time.monotonic() - self._seen_at > 2.0 * self.seconds

    @property
    def _own(self) -> ColumnElement[bool]:
        return (leases.c.name == _NAME) & (leases.c.number == self.number) & (leases.c.holder == self.holder)

    def _renew(self) -> None:
        while not self._ended.wait(self.seconds / 4):
            try:
                until = self.database.time() + self.seconds
                with self.database.changing() as connection:
                    if connection.execute(update(leases).where(self._own).values(until=until)).rowcount == 0:
                        return  # whatever is written next finds out
                self.database.is_back()
            except FAILED as error:
                self.database.is_away(error)


def is_held(database: Database) -> bool:
    """Whether some process coordinates."""
    now = database.time()
    with database.reading() as connection:
        until = connection.execute(select(leases.c.until).where(leases.c.name == _NAME)).scalar()
    return until is not None and until > now
