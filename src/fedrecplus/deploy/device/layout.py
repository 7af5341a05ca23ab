"""The tables of a device's store, and how a store of an earlier version gets them.

That is one transaction, with the layout's number in it: a kill in the middle, or a full disk, leaves the store as it
was. A store of a later version is refused and left alone.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from fedrecplus import __version__
from fedrecplus.errors import UserError
from fedrecplus.randomness import new_secret

_MADE_BY = "made_by"
"""the fact that has the version of fedrecplus that made these tables"""
_TABLES = """
CREATE TABLE models (
    model TEXT PRIMARY KEY, settings TEXT NOT NULL, catalogue TEXT NOT NULL, items INTEGER NOT NULL,
    round INTEGER NOT NULL, V BLOB NOT NULL, at TEXT NOT NULL) STRICT;
CREATE TABLE shown (
    person INTEGER PRIMARY KEY, catalogue TEXT NOT NULL, rated TEXT NOT NULL, pseudo TEXT NOT NULL) STRICT;
CREATE TABLE sums (
    session TEXT PRIMARY KEY, model TEXT NOT NULL, round INTEGER NOT NULL, digest TEXT NOT NULL,
    V TEXT NOT NULL, catalogue TEXT NOT NULL, config TEXT NOT NULL, state BLOB, reply BLOB,
    task TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE unmasked (
    V TEXT PRIMARY KEY, model TEXT NOT NULL, session TEXT NOT NULL, survivors TEXT NOT NULL,
    task TEXT NOT NULL DEFAULT '', round INTEGER NOT NULL DEFAULT -2) STRICT;
CREATE TABLE tables (
    model TEXT NOT NULL, round INTEGER NOT NULL, at TEXT NOT NULL, V BLOB NOT NULL, PRIMARY KEY (model, round)) STRICT;
CREATE TABLE ledger (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, task TEXT NOT NULL, release INTEGER NOT NULL,
    epsilon REAL NOT NULL) STRICT;
CREATE TABLE tasks (
    digest TEXT PRIMARY KEY, document TEXT NOT NULL, agreed INTEGER NOT NULL, at TEXT NOT NULL) STRICT;
CREATE TABLE logs (task TEXT PRIMARY KEY, leaves BLOB NOT NULL, signature BLOB NOT NULL) STRICT;
CREATE TABLE states (model TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
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
    stage TEXT NOT NULL DEFAULT 'upload') STRICT
"""


_KEPT = ("facts", "persons", "ratings", "sent", "shown", "unmasked", "ledger", "tasks", "logs")
"""what comes along from an earlier layout: what the owner gave and agreed to, and what was sent, summed and paid"""
LAYOUT = 9


def make_tables(store: sqlite3.Connection, facts: Mapping[str, object], persons: Mapping[int, str]) -> None:
    """The tables of a new store, with what it begins with; all or none."""
    store.execute("BEGIN IMMEDIATE")
    _run(store, _TABLES)
    store.executemany("INSERT INTO facts VALUES (?, ?)", [(name, str(value)) for name, value in facts.items()])
    store.executemany("INSERT INTO persons VALUES (?, ?)", persons.items())
    _finish(store)


def bring_up_to_date(store: sqlite3.Connection, path: Path) -> None:
    """Make the tables of an earlier store anew, with what is to be kept; refuse a store of a later version."""
    if _layout(store) == LAYOUT:
        return
    if not 0 < _layout(store) < LAYOUT:
        raise _strange(store, path)
    store.execute("BEGIN IMMEDIATE")
    try:
        if _layout(store) < LAYOUT:  # looked at again: another process may have been faster
            renew(store)
        _finish(store)
    except BaseException:
        if store.in_transaction:
            store.execute("ROLLBACK")
        raise


def renew(store: sqlite3.Connection) -> None:
    """Today's tables, with the rows of those that are kept; models, catalogues and answers come again from servers.

    Earlier secrets had 64 bits, and uploads led back to the first ones, so there is a new one but where one was given.
    """
    before = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for name in before:
        store.execute(f"ALTER TABLE {name} RENAME TO earlier_{name}")
    _run(store, _TABLES)
    for name in (name for name in _KEPT if name in before):
        now, then = (_columns(store, table) for table in (name, f"earlier_{name}"))
        columns = ", ".join(column for column in now if column in then)
        store.execute(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM earlier_{name} ORDER BY rowid")
    for name in sorted(before, key="persons".__eq__):  # ratings refer to it
        store.execute(f"DROP TABLE earlier_{name}")
    store.execute(
        "UPDATE facts SET value = ? WHERE name = 'secret' AND LENGTH(value) < 40 "
        "AND (SELECT value FROM facts WHERE name = 'numbers') = 'hidden'",
        (str(new_secret()),),
    )


def _columns(store: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in store.execute(f"PRAGMA table_info({table})")]


def _finish(store: sqlite3.Connection) -> None:
    store.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_MADE_BY, __version__))
    store.execute(f"PRAGMA user_version = {LAYOUT}")
    store.execute("COMMIT")


def _layout(store: sqlite3.Connection) -> int:
    return int(store.execute("PRAGMA user_version").fetchone()[0])


def _run(store: sqlite3.Connection, script: str) -> None:
    """Statements within a transaction; sqlite3's ``executescript`` would end it."""
    for statement in script.split(";"):
        store.execute(statement)


def _strange(store: sqlite3.Connection, path: Path) -> UserError:
    if _layout(store) == 0:
        remedy = "give the folder that `fedrecplus device init` made; if that was interrupted, delete the file"
        return UserError(f"{path} is no store of fedrecplus", remedy)
    by = None
    with contextlib.suppress(sqlite3.Error):
        by = store.execute("SELECT value FROM facts WHERE name = ?", (_MADE_BY,)).fetchone()
    made = f", made by fedrecplus {by[0]}" if by else ""
    return UserError(
        f"{path} has layout {_layout(store)}{made}; fedrecplus {__version__} knows layouts up to {LAYOUT}",
        "upgrade fedrecplus here: pip install --upgrade fedrecplus; the store is left as it is",
    )
