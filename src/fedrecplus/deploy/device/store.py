"""A device's store: its persons' ratings, their secrets, and what it ever sent. A silo's store has many persons.

It is a SQLite file on the device's own disk that only its owner may read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import resource
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrecplus.data.scale import Scale
from fedrecplus.deploy.device.private_files import check_private
from fedrecplus.errors import UserError
from fedrecplus.randomness import new_secret

if TYPE_CHECKING:
    from fedrecplus.deploy.wire import Packet

OWNER = "me"
_OWNER = MappingProxyType({0: OWNER})
BATCH = 5
"""changes that wait for each other before they enter an upload"""
ON_SCALE = "rate on the scale, or change it with `fedrecplus device scale`"
_LAYOUT = 4
_MODELS = """
CREATE TABLE models (
    model TEXT PRIMARY KEY, settings TEXT NOT NULL, catalogue TEXT NOT NULL, round INTEGER NOT NULL,
    V BLOB NOT NULL, at TEXT NOT NULL) STRICT;
"""
_SHOWN = """
CREATE TABLE IF NOT EXISTS shown (
    person INTEGER PRIMARY KEY, catalogue TEXT NOT NULL, rated TEXT NOT NULL, pseudo TEXT NOT NULL) STRICT;
"""
_SUMS = """
CREATE TABLE IF NOT EXISTS sums (
    session TEXT PRIMARY KEY, model TEXT NOT NULL, round INTEGER NOT NULL, digest TEXT NOT NULL,
    V TEXT NOT NULL, catalogue TEXT NOT NULL, config TEXT NOT NULL, state BLOB, reply BLOB) STRICT;
CREATE TABLE IF NOT EXISTS unmasked (
    V TEXT PRIMARY KEY, model TEXT NOT NULL, session TEXT NOT NULL, survivors TEXT NOT NULL) STRICT;
"""
_EARLIER = """
CREATE TABLE IF NOT EXISTS tables (
    model TEXT NOT NULL, round INTEGER NOT NULL, at TEXT NOT NULL, V BLOB NOT NULL, PRIMARY KEY (model, round)) STRICT;
"""
_TABLES = f"""{_MODELS} {_SHOWN} {_SUMS} {_EARLIER}
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE persons (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE ratings (
    person INTEGER NOT NULL REFERENCES persons(number), item TEXT NOT NULL, rating REAL NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (person, item)) STRICT;
CREATE TABLE catalogues (digest TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE taking_part (
    model TEXT NOT NULL, person INTEGER NOT NULL, items BLOB NOT NULL, ratings BLOB NOT NULL, U BLOB NOT NULL,
    pseudo_items BLOB, virtual_ratings BLOB, PRIMARY KEY (model, person)) STRICT;
CREATE TABLE answers (
    model TEXT PRIMARY KEY, round INTEGER NOT NULL, digest TEXT NOT NULL, content BLOB NOT NULL) STRICT;
CREATE TABLE sent (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, model TEXT NOT NULL, round INTEGER NOT NULL, persons INTEGER NOT NULL,
    rows INTEGER NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL, again INTEGER NOT NULL,
    seconds REAL NOT NULL, memory INTEGER NOT NULL, received INTEGER NOT NULL,
    stage TEXT NOT NULL DEFAULT 'upload') STRICT;
"""
_FROM_1 = f"DROP TABLE models; {_MODELS} DELETE FROM taking_part; DELETE FROM answers; DELETE FROM catalogues;"
"""from fedrecplus 0.1, whose models nobody goes on with; ratings and log stay"""
_TO_3 = f"{_SHOWN} {_SUMS} ALTER TABLE sent ADD COLUMN stage TEXT NOT NULL DEFAULT 'upload';"
_OLDER = {1: _FROM_1 + _TO_3 + _EARLIER, 2: _TO_3 + _EARLIER, 3: _EARLIER}
"""layout → what makes it this one; before 3, each model had a pseudo set of its own"""
_GAVE_SECRETS_AWAY = 3
"""first layout whose secret no upload led back to"""


class StorageFull(UserError):
    """The disk took no more. What was stored before is still there."""


@dataclass(frozen=True)
class SentLine:
    """What left, and what it cost this device: the columns of ``sent``."""

    at: str
    model: str
    round: int
    persons: int
    rows: int
    bytes: int
    digest: str
    again: int
    seconds: float
    memory: int
    received: int
    stage: str

    @classmethod
    def of(
        cls, model: str, number: int, persons: int, rows: int, reply: Packet, started: float, received: int,
        *, again: bool = False, stage: str = "upload",
    ) -> SentLine:  # fmt: skip
        """A reply's line."""
        memory, seconds = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter() - started
        size = (persons, rows, reply.size, reply.digest)
        return cls(now(), model, number, *size, int(again), seconds, memory, received, stage)


@dataclass(frozen=True)
class Store:
    """An open store. Everything that changes it is one transaction."""

    path: Path
    connection: sqlite3.Connection

    @classmethod
    def create(
        cls, path: Path, scale: Scale, *, seed: int | None = None, batch: int = BATCH,
        persons: Mapping[int, str] = _OWNER,
    ) -> None:  # fmt: skip
        """Make a store. Its secret comes from the operating system; ``seed`` is for comparing with a simulation.

        With a seed, persons have the numbers that they have in the simulation, on the wire too. Folder and file are the
        owner's alone before anything is in them.
        """
        if path.exists():
            raise UserError(f"{path} is there already", "go on with it, or `fedrecplus device forget` it first")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.parent.chmod(0o700)
        except OSError as error:
            raise UserError(f"{path.parent}: {error.strerror}", "choose a folder of your own") from None
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        secret, numbers = (new_secret(), "hidden") if seed is None else (seed, "as in simulation")
        facts = {"secret": secret, "scale": scale, "batch": batch, "numbers": numbers}
        try:
            with cls.open(path, layout=0) as store:
                store._change_layout(_TABLES)
                with store.changing():
                    store.put("facts", [(name, str(value)) for name, value in facts.items()])
                    store.put("persons", persons.items())
        except BaseException:
            remove_store(path)
            raise

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, layout: int = _LAYOUT) -> Iterator[Store]:
        """An existing store. SQLite's errors become errors with a remedy; none of them contains a rating."""
        check_private(path)
        if not path.exists():
            raise UserError(f"{path}: no store of ratings here", "make one with `fedrecplus device init`")
        with _in_words(path), contextlib.closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as opened:
            for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
                opened.execute(f"PRAGMA {setting}")
            store = cls(path, opened)
            version = store.value("PRAGMA user_version")
            if version in _OLDER:
                if version < _GAVE_SECRETS_AWAY:
                    store._replace_secret()
                store._change_layout(_OLDER[version])
            elif version != layout:
                raise UserError(f"{path} has layout {version}, this version knows {_LAYOUT}", "upgrade fedrecplus")
            yield store

    def _change_layout(self, script: str) -> None:
        self.connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {_LAYOUT}; COMMIT;")

    def _replace_secret(self) -> None:
        """A new secret for a store of an earlier layout: the numbers that its uploads carried gave the old one away."""
        if not self.as_in_simulation:
            with self.changing():
                self.put("facts", [("secret", str(new_secret()))])

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Changes that are all made, or none, also when the disk is full or the process is killed."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def put(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows within ``changing``, in the place of those with the same key."""
        for row in rows:
            self.connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def value(self, query: str, *parameters: Any) -> Any:
        """The first column of the first row that a query finds; None if there is none."""
        row = self.connection.execute(query, parameters).fetchone()
        return row[0] if row else None

    def fact(self, name: str) -> Any:
        """A setting of this store, as text; None if it has no such one."""
        return self.value("SELECT value FROM facts WHERE name = ?", name)

    @property
    def secret(self) -> int:
        """The key of every draw here, as ``Config.seed`` is in a simulation. It never leaves the device."""
        return int(self.fact("secret"))

    @property
    def batch(self) -> int:
        """How many changes enter uploads together."""
        return int(self.fact("batch"))

    @property
    def scale(self) -> Scale:
        """The scale that ratings are given on."""
        return Scale.parse(self.fact("scale"))

    def change_scale(self, scale: Scale) -> None:
        """Rate on another scale from now on; the ratings that are there must be on it, and keep their values."""
        with self.changing():
            rows = self.connection.execute("SELECT person, item, rating FROM ratings").fetchall()
            _check_scale(scale, rows, "change it first")
            self.put("facts", [("scale", str(scale))])

    @property
    def allowed_rules(self) -> list[str]:
        """Import paths of rules from outside that its owner lets a server's config name."""
        return list(json.loads(self.fact("allowed_rules") or "[]"))

    def allow_rules(self, names: Iterable[str]) -> None:
        """Let these rules in from now on, and no others from outside."""
        with self.changing():
            self.put("facts", [("allowed_rules", json.dumps(sorted(set(names))))])

    def wire_number(self, model: str, person: int) -> int:
        """The number a person has towards the server: another one for each model, so that they can't be joined."""
        return person if self.as_in_simulation else self.one_way_key("wire-number", int(model, 16), person) >> 2

    @property
    def as_in_simulation(self) -> bool:
        """Whether it was made with a seed, to be compared with a simulation: nothing is hidden then."""
        return bool(self.fact("numbers") != "hidden")

    def one_way_key(self, purpose: str, *numbers: int) -> int:
        """64 bits for a purpose, by HMAC-SHA256.

        What leaves the device, or follows from what leaves, must not lead back to the secret. ``randomness.subkey``
        does: each of its steps can be inverted.
        """
        message = json.dumps([purpose, *numbers]).encode()
        digest = hmac.new(str(self.secret).encode(), message, hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big")

    def persons(self) -> dict[str, int]:
        """Name → number."""
        return {name: number for number, name in self.connection.execute("SELECT number, name FROM persons")}

    def add_persons(self, names: list[str]) -> dict[str, int]:
        """Numbers of these persons; those who are new get the next ones."""
        with self.changing():
            known = self.persons()
            fresh = [name for name in dict.fromkeys(names) if name not in known]
            self.put("persons", enumerate(fresh, max(known.values(), default=-1) + 1))
        return self.persons()

    def rate(self, ratings: Mapping[str, float], person: int = 0) -> None:
        """Add or change ratings of one person."""
        self.rate_many([(person, item, rating) for item, rating in ratings.items()])

    def rate_many(self, rows: list[tuple[int, str, float]]) -> None:
        """Add or change ratings; one that isn't on the scale keeps all of them out."""
        _check_scale(self.scale, rows, ON_SCALE)
        with self.changing():
            self.put("ratings", [(*row, now()) for row in rows])

    def unrate(self, item: str, person: int = 0) -> None:
        """Take a rating back. Uploads change with the next batch, recommendations at once."""
        with self.changing():
            done = self.connection.execute("DELETE FROM ratings WHERE person = ? AND item = ?", (person, item))
            if done.rowcount == 0:
                raise UserError(f"item {item!r} isn't rated", "`fedrecplus device status` counts the ratings")

    def ratings(self) -> dict[int, dict[str, float]]:
        """Everybody's ratings: person → item → rating."""
        everybody: dict[int, dict[str, float]] = {number: {} for number in sorted(self.persons().values())}
        for person, item, rating in self.connection.execute("SELECT person, item, rating FROM ratings"):
            everybody[person][item] = rating
        return everybody

    def log_sent(self, line: SentLine) -> None:
        """Note what leaves, within ``changing`` and before it leaves."""
        self.put("sent", [(None, *astuple(line))])

    def sent(self) -> list[dict[str, Any]]:
        """Everything that ever left, oldest first."""
        return self._rows("SELECT * FROM sent ORDER BY number")

    def models(self) -> list[dict[str, Any]]:
        """The models this device takes part in, newest first, without their tables."""
        return self._rows("SELECT model, catalogue, round, at, settings FROM models ORDER BY at DESC")

    def _rows(self, query: str) -> list[dict[str, Any]]:
        cursor = self.connection.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def remove_store(path: Path) -> None:
    """Delete a store with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def now() -> str:
    """The time, for logs."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _check_scale(scale: Scale, rows: list[tuple[int, str, float]], remedy: str) -> None:
    values = np.array([rating for _, _, rating in rows], dtype=np.float64)
    finite = np.isfinite(values)
    for wrong in np.flatnonzero(~(finite & scale.holds(np.where(finite, values, scale.low)))):
        raise UserError(f"rating {values[wrong]:g} of item {rows[wrong][1]!r} is not on the scale {scale}", remedy)


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            problem = f"{path}: the disk is full or can't be written ({text}); nothing that was stored is lost"
            raise StorageFull(problem, "make room and try again") from None
        if "locked" in text:
            raise UserError(f"{path} is in use", "try again in a moment") from None
        raise UserError(f"{path}: {text}", "check the file and its folder's permissions") from None
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path} is damaged: {error}", "restore it from a backup") from None
