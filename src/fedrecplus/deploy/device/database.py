"""A SQLite file on the device's own disk that only its owner may read."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from fedrecplus.errors import UserError

SCHEMA = 2

_MODELS = """
CREATE TABLE models (
    model TEXT PRIMARY KEY, settings TEXT NOT NULL, catalogue TEXT NOT NULL, round INTEGER NOT NULL,
    V BLOB NOT NULL, at TEXT NOT NULL) STRICT;
"""
_TABLES = f"""{_MODELS}
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
    seconds REAL NOT NULL, memory INTEGER NOT NULL, received INTEGER NOT NULL) STRICT;
"""
_FROM_1 = f"DROP TABLE models; {_MODELS} DELETE FROM taking_part; DELETE FROM answers; DELETE FROM catalogues;"
"""from fedrecplus 0.1, whose models nobody goes on with; ratings, secret and log stay"""


class StorageFull(UserError):
    """The disk took no more. What was stored before is still there."""


def create_store(path: Path) -> None:
    """Make an empty store; the folder and the file are the owner's alone before anything is in them."""
    if path.exists():
        raise UserError(f"{path} is there already", "go on with it, or `fedrecplus device forget` it first")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
    except OSError as error:
        raise UserError(f"{path.parent}: {error.strerror}", "choose a folder of your own") from None
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with connected(path, new=True) as database:
            _change_layout(database, _TABLES)
    except BaseException:
        remove_store(path)
        raise


def remove_store(path: Path) -> None:
    """Delete a store with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def connected(path: Path, *, new: bool = False) -> Iterator[sqlite3.Connection]:
    """An open store. SQLite's errors become errors with a remedy; none of them contains a rating."""
    if not path.exists():
        raise UserError(f"{path}: no store of ratings here", "make one with `fedrecplus device init`")
    with _in_words(path):
        database = sqlite3.connect(path, timeout=30.0, isolation_level=None)
        try:
            for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
                database.execute(f"PRAGMA {setting}")
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version == 1:
                _change_layout(database, _FROM_1)
            elif not new and version != SCHEMA:
                raise UserError(f"{path} has layout {version}, this version knows {SCHEMA}", "upgrade fedrecplus")
            yield database
        finally:
            database.close()


def _change_layout(database: sqlite3.Connection, script: str) -> None:
    database.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {SCHEMA}; COMMIT;")


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            raise StorageFull(
                f"{path}: the disk is full or can't be written ({text}); nothing that was stored is lost",
                "make room and try again",
            ) from None
        if "locked" in text:
            raise UserError(f"{path} is in use", "try again in a moment") from None
        raise UserError(f"{path}: {text}", "check the file and its folder's permissions") from None
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path} is damaged: {error}", "restore it from a backup") from None
