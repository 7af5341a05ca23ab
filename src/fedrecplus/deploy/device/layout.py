"""The tables of a device's store, and how a store of an earlier version gets them: one step for each layout.

All steps that a store needs are one transaction, with the layout's number in it: a kill in the middle, or a full disk,
leaves the store as it was. A store of a later version is refused and left alone.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from fedrecplus import __version__
from fedrecplus.errors import UserError
from fedrecplus.randomness import new_secret

_MADE_BY = "made_by"
"""the fact that has the version of fedrecplus that made these tables"""
_MODELS = """
CREATE TABLE models (
    model TEXT PRIMARY KEY, settings TEXT NOT NULL, catalogue TEXT NOT NULL, round INTEGER NOT NULL,
    V BLOB NOT NULL, at TEXT NOT NULL) STRICT
"""
_SHOWN_AND_SUMS = """
CREATE TABLE shown (
    person INTEGER PRIMARY KEY, catalogue TEXT NOT NULL, rated TEXT NOT NULL, pseudo TEXT NOT NULL) STRICT;
CREATE TABLE sums (
    session TEXT PRIMARY KEY, model TEXT NOT NULL, round INTEGER NOT NULL, digest TEXT NOT NULL,
    V TEXT NOT NULL, catalogue TEXT NOT NULL, config TEXT NOT NULL, state BLOB, reply BLOB) STRICT;
CREATE TABLE unmasked (
    V TEXT PRIMARY KEY, model TEXT NOT NULL, session TEXT NOT NULL, survivors TEXT NOT NULL) STRICT
"""
_EARLIER = """
CREATE TABLE tables (
    model TEXT NOT NULL, round INTEGER NOT NULL, at TEXT NOT NULL, V BLOB NOT NULL, PRIMARY KEY (model, round)) STRICT
"""
_LEDGER = """
CREATE TABLE ledger (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, task TEXT NOT NULL, release INTEGER NOT NULL,
    epsilon REAL NOT NULL) STRICT
"""
_TASKS = """
CREATE TABLE tasks (
    digest TEXT PRIMARY KEY, document TEXT NOT NULL, agreed INTEGER NOT NULL, at TEXT NOT NULL) STRICT;
CREATE TABLE logs (task TEXT PRIMARY KEY, leaves BLOB NOT NULL, signature BLOB NOT NULL) STRICT;
CREATE TABLE states (model TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
ALTER TABLE sums ADD COLUMN task TEXT NOT NULL DEFAULT '';
ALTER TABLE unmasked ADD COLUMN task TEXT NOT NULL DEFAULT '';
ALTER TABLE unmasked ADD COLUMN round INTEGER NOT NULL DEFAULT -2
"""
_TABLES = f"""{_MODELS}; {_SHOWN_AND_SUMS}; {_EARLIER}; {_LEDGER}; {_TASKS};
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


def _from_1(store: sqlite3.Connection) -> None:
    """From fedrecplus 0.1, whose models nobody goes on with, nor reads; ratings, settings and log stay."""
    _run(store, f"DROP TABLE models; {_MODELS}")
    _run(store, "DELETE FROM taking_part; DELETE FROM answers; DELETE FROM catalogues")


def _from_2(store: sqlite3.Connection) -> None:
    """One set of shown rows for all models, and secure sums.

    Numbers that uploads carried before led back to the secret, so there is a new one; one that was given stays.
    """
    _run(store, f"{_SHOWN_AND_SUMS}; ALTER TABLE sent ADD COLUMN stage TEXT NOT NULL DEFAULT 'upload'")
    store.execute(
        "UPDATE facts SET value = ? WHERE name = 'secret' "
        "AND (SELECT value FROM facts WHERE name = 'numbers') = 'hidden'",
        (str(new_secret()),),
    )
    _run(store, "DELETE FROM catalogues")  # servers send them along again


def _from_3(store: sqlite3.Connection) -> None:
    """Earlier tables of a model are kept."""
    _run(store, _EARLIER)


def _from_4(store: sqlite3.Connection) -> None:
    """Settings that a model began with are compared as what differs from defaults: later versions have more of them."""
    from fedrecplus.config import from_tables
    from fedrecplus.deploy.wire import fixed_settings

    for model, settings in store.execute("SELECT model, settings FROM models").fetchall():
        with contextlib.suppress(UserError):  # an outside rule, or a setting that is gone: nobody goes on with it
            told = fixed_settings(from_tables(json.loads(settings)))
            store.execute("UPDATE models SET settings = ? WHERE model = ?", (told, model))


def _from_5(store: sqlite3.Connection) -> None:
    """What noised sums have cost is noted. Secrets have 256 bits; one that was given stays."""
    _run(store, _LEDGER)
    store.execute(
        "UPDATE facts SET value = ? WHERE name = 'secret' "
        "AND (SELECT value FROM facts WHERE name = 'numbers') = 'hidden'",
        (str(new_secret()),),
    )


def _from_6(store: sqlite3.Connection) -> None:
    """Tables and catalogues are kept as MessagePack; those in another encoding come again from the server."""
    for table in ("answers", "catalogues", "tables", "sums"):
        store.execute(f"DELETE FROM {table}")
    store.execute("UPDATE models SET V = x''")


def _from_7(store: sqlite3.Connection) -> None:
    """Tasks are agreed to, and a round of a task is summed once."""
    _run(store, _TASKS)


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _from_1, _from_2, _from_3, _from_4, _from_5, _from_6, _from_7,
)  # fmt: skip
"""the n-th makes layout n + 1 of layout n"""
LAYOUT = 1 + len(STEPS)


def make_tables(store: sqlite3.Connection, facts: Mapping[str, object], persons: Mapping[int, str]) -> None:
    """The tables of a new store, with what it begins with; all or none."""
    store.execute("BEGIN IMMEDIATE")
    _run(store, _TABLES)
    store.executemany("INSERT INTO facts VALUES (?, ?)", [(name, str(value)) for name, value in facts.items()])
    store.executemany("INSERT INTO persons VALUES (?, ?)", persons.items())
    _finish(store)


def bring_up_to_date(store: sqlite3.Connection, path: Path) -> None:
    """Take the steps that a store of an earlier version needs; refuse one of a later version."""
    if _layout(store) == LAYOUT:
        return
    if not 0 < _layout(store) < LAYOUT:
        raise _strange(store, path)
    store.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[_layout(store) - 1 :]:  # looked at again: another process may have been faster
            step(store)
        _finish(store)
    except BaseException:
        if store.in_transaction:
            store.execute("ROLLBACK")
        raise


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
