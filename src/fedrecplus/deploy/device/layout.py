"""The tables of a device's store, and their number: a store of another version is refused and left alone."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from fedrecplus import __version__
from fedrecplus.errors import UserError

_MADE_BY = "made_by"
"""the fact that has the version of fedrecplus that made these tables"""
_TABLES = """
CREATE TABLE models (
    model TEXT PRIMARY KEY, settings TEXT NOT NULL, catalogue TEXT NOT NULL, items INTEGER NOT NULL,
    round INTEGER NOT NULL, at TEXT NOT NULL) STRICT;
CREATE TABLE shown (
    person INTEGER PRIMARY KEY, catalogue TEXT NOT NULL, rated TEXT NOT NULL, pseudo TEXT NOT NULL) STRICT;
CREATE TABLE sums (
    session TEXT PRIMARY KEY, model TEXT NOT NULL, round INTEGER NOT NULL, digest TEXT NOT NULL,
    V TEXT NOT NULL, catalogue TEXT NOT NULL, config TEXT NOT NULL, state BLOB, reply BLOB,
    task TEXT NOT NULL) STRICT;
CREATE TABLE unmasked (
    V TEXT PRIMARY KEY, model TEXT NOT NULL, session TEXT NOT NULL, survivors TEXT NOT NULL,
    task TEXT NOT NULL, round INTEGER NOT NULL) STRICT;
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
    stage TEXT NOT NULL) STRICT
"""
LAYOUT = 10


def make_tables(store: sqlite3.Connection, facts: Mapping[str, object], persons: Mapping[int, str]) -> None:
    """The tables of a new store, with what it begins with; all or none."""
    store.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):  # sqlite3's ``executescript`` would end the transaction
        store.execute(statement)
    begun = {**facts, _MADE_BY: __version__}
    store.executemany("INSERT INTO facts VALUES (?, ?)", [(name, str(value)) for name, value in begun.items()])
    store.executemany("INSERT INTO persons VALUES (?, ?)", persons.items())
    store.execute(f"PRAGMA user_version = {LAYOUT}")
    store.execute("COMMIT")


def check_layout(store: sqlite3.Connection, path: Path) -> None:
    """Refuse a store whose tables are other ones."""
    layout = int(store.execute("PRAGMA user_version").fetchone()[0])
    if layout == LAYOUT:
        return
    if layout == 0:
        remedy = "give the folder that `fedrecplus device init` made; if that was interrupted, delete the file"
        raise UserError(f"{path} is no store of fedrecplus", remedy)
    by = None
    with contextlib.suppress(sqlite3.Error):
        by = store.execute("SELECT value FROM facts WHERE name = ?", (_MADE_BY,)).fetchone()
    made = f", made by fedrecplus {by[0]}" if by else ""
    upgrade = "upgrade fedrecplus here: pip install --upgrade fedrecplus"
    raise UserError(
        f"{path} has layout {layout}{made}; fedrecplus {__version__} knows layout {LAYOUT}",
        f"{upgrade if layout > LAYOUT else 'take the fedrecplus that made it'}; the store is left as it is",
    )
