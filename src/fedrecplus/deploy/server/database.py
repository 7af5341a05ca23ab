"""A server's database: SQLite in its home by default, PostgreSQL by its address. Layouts are alembic's business."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event, inspect, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    InternalError,
    NoSuchModuleError,
    OperationalError,
    TimeoutError as NoConnection,
)

from fedrecplus.errors import UserError

log = logging.getLogger("fedrecplus")
Result = TypeVar("Result")
_PATIENCE = 30.0
"""seconds that a writer waits for another"""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_CLOCK = 30.0
"""seconds between two looks at the database's clock"""
AWAY = (OperationalError, InterfaceError, InternalError, NoConnection)
"""what a call fails with that may succeed later: a database that is down, full, read-only for a while, or too busy"""
FAILED = (DBAPIError, NoConnection)
"""what a call of a database may fail with"""
_CONNECTING = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
"""of libpq: a database whose machine is gone without a word would be waited for as long as TCP tries, a quarter hour"""


class Database:
    """Connections to one database."""

    def __init__(self, address: str) -> None:
        try:
            url = make_url(address)
            self.is_sqlite = url.get_backend_name() == "sqlite"
            options: dict[str, Any] = {} if self.is_sqlite else {"pool_size": 5, "max_overflow": 10}
            if url.get_driver_name().startswith("psycopg"):
                options["connect_args"] = {key: value for key, value in _CONNECTING.items() if key not in url.query}
            self.engine = create_engine(url, pool_pre_ping=True, **options)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            remedy = "write postgresql+psycopg://USER@HOST/NAME, and pip install 'psycopg[binary]'"
            raise UserError(f"--database {address.partition('@')[0]}: {error}", remedy) from None
        self.address = address
        self.seconds_away = 0.0
        """that callers have waited for it"""
        self._away = False
        self._ahead, self._asked = 0.0, -math.inf
        if self.is_sqlite:
            event.listen(self.engine, "connect", _set_up)
            event.listen(self.engine, "begin", _begin_immediate)

    def time(self) -> float:
        """Seconds since 1970 by the database's clock: the machines that share it needn't agree on the time."""
        if self.is_sqlite:  # which is on this machine
            return time.time()
        if time.monotonic() - self._asked > _CLOCK:
            with self.reading() as connection:
                said = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
            self._ahead, self._asked = float(said) - time.monotonic(), time.monotonic()
        return time.monotonic() + self._ahead

    @contextlib.contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction; what it did is there as a whole, or not at all."""
        with self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from, of one moment; it waits for no writer."""
        with self.engine.connect().execution_options(reads_only=True) as connection:
            yield connection

    def upgrade(self) -> None:
        """Make the tables, or bring them to this version's layout; one process at a time."""
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        settings = Config()
        settings.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
        settings.attributes["database"] = self
        try:
            command.upgrade(settings, "head")
        except CommandError as error:
            raise UserError(f"{self}: {error}", "a later fedrecplus made its tables: install that one") from None

    def check(self, *, tables: bool = False) -> None:
        """Refuse a database that doesn't answer, in words; with ``tables`` one that isn't a server's, too."""
        try:
            with self.reading() as connection:
                connection.exec_driver_sql("SELECT 1")
                if tables and not inspect(connection).has_table("nodes"):
                    raise UserError(f"{self} has no server's tables", "restore a backup, or begin by `server up`")
        except FAILED as error:
            remedy = "check the address, and that the database is up"
            raise UserError(f"{self}: {first_line(error)}", remedy) from None

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Call again while the database is away: it may be restarted in the middle of a round."""
        began, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            try:
                result = call()
            except AWAY as error:
                self.is_away(error)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if pause > _FIRST_PAUSE:
                self.is_back()
                self.seconds_away += time.monotonic() - began
            return result

    def is_away(self, error: DBAPIError | NoConnection) -> str:
        """Say that it doesn't answer, and why: once, or an outage of an hour fills the log."""
        why = first_line(error)
        if not self._away:
            log.warning("the database doesn't answer (%s); trying on", why)
        self._away = True
        return why

    def is_back(self) -> None:
        """It answered who was told that it is away."""
        self._away = False

    def __str__(self) -> str:
        return self.engine.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Let all connections go."""
        self.engine.dispose()


def first_line(error: DBAPIError | NoConnection) -> str:
    """What the driver says, without the statement."""
    said = error.orig if isinstance(error, DBAPIError) else error
    return (str(said).splitlines() or [type(error).__name__])[0][:200]


def _set_up(connection: Any, _: Any) -> None:
    """A SQLite connection: readers and a writer at once, writers in turn."""
    connection.isolation_level = None  # transactions begin by _begin_immediate
    for setting in (
        f"busy_timeout = {int(1000 * _PATIENCE)}", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON",
        "secure_delete = ON",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {setting}")


def _begin_immediate(connection: Connection) -> None:
    reads = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
