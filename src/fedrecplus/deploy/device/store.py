"""A device's store: its persons' ratings, their secrets, and what it ever sent. A silo's store has many persons.

It is a SQLite file on the device's own disk that only its owner may read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fedrecplus.data import Scale
from fedrecplus.deploy.device.layout import check_layout, make_tables
from fedrecplus.deploy.device.sent import SentLine, now
from fedrecplus.errors import UserError
from fedrecplus.files import check_private, open_private
from fedrecplus.randomness import new_secret

OWNER = "me"
_OWNER = MappingProxyType({0: OWNER})
BATCH = 5
"""changes that wait for each other before they enter an upload"""
ON_SCALE = "rate on the scale, or change it with `fedrecplus device scale`; `join` has --scale"


class StorageFull(UserError):
    """The disk took no more. What was stored before is still there."""


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
        open_private(path).close()
        secret, numbers = (new_secret(), "hidden") if seed is None else (seed, "as in simulation")
        facts = {"secret": secret, "scale": scale, "batch": batch, "numbers": numbers}
        try:
            with _connected(path) as connection:
                make_tables(connection, facts, persons)
        except BaseException:
            remove_store(path)
            raise

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path) -> Iterator[Store]:
        """An existing store. SQLite's errors become errors with a remedy; none of them contains a rating."""
        check_private(path)
        if not path.exists():
            raise UserError(f"{path}: no store of ratings here", "make one with `fedrecplus device init`")
        with _connected(path) as connection:
            check_layout(connection, path)
            yield cls(path, connection)

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
        if self.as_in_simulation:
            return person
        return int.from_bytes(self.one_way_key("wire-number", int(model, 16), person)[:8], "big") >> 2

    @property
    def as_in_simulation(self) -> bool:
        """Whether it was made with a seed, to be compared with a simulation: nothing is hidden then."""
        return bool(self.fact("numbers") != "hidden")

    def one_way_key(self, purpose: str, *numbers: int) -> bytes:
        """32 bytes for a purpose, by HMAC-SHA256.

        What leaves the device, or follows from what leaves, must not lead back to the secret.
        """
        message = json.dumps([purpose, *numbers]).encode()
        return hmac.new(str(self.secret).encode(), message, hashlib.sha256).digest()

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
        """Everybody's ratings: person → item → rating, in the order in which they were given or changed last."""
        everybody: dict[int, dict[str, float]] = {number: {} for number in sorted(self.persons().values())}
        for person, item, rating in self.connection.execute("SELECT person, item, rating FROM ratings ORDER BY rowid"):
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
        return self._rows("SELECT model, catalogue, round, at, settings FROM models ORDER BY at DESC, rowid DESC")

    def _rows(self, query: str) -> list[dict[str, Any]]:
        cursor = self.connection.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def remove_store(path: Path) -> None:
    """Delete a store with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _check_scale(scale: Scale, rows: list[tuple[int, str, float]], remedy: str) -> None:
    values = np.array([rating for _, _, rating in rows], dtype=np.float64)
    finite = np.isfinite(values)
    for wrong in np.flatnonzero(~(finite & scale.holds(np.where(finite, values, scale.low)))):
        raise UserError(f"rating {values[wrong]:g} of item {rows[wrong][1]!r} is not on the scale {scale}", remedy)


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with _in_words(path), contextlib.closing(sqlite3.connect(path, timeout=30.0, isolation_level=None)) as connection:
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        yield connection


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
