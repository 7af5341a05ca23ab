"""Who is connected: each worker says in one row whom it has, when that changes; idle polls write nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np
from sqlalchemy import delete, insert, select, update

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.schema import nodes, workers

BEAT = 5.0
"""seconds between two words of a worker whose nodes stay the same"""
_GONE = 4 * BEAT
"""seconds without a word after which a worker is gone, and its nodes with it"""


def say_present(database: Database, worker: str, present: Collection[int], counters: Mapping[str, int]) -> None:
    """A worker's row."""
    now = database.time()
    facts = {
        "at": now, "present": np.fromiter(present, np.int64, len(present)).tobytes(),
        "counters": json.dumps(counters),
    }  # fmt: skip
    with database.changing() as connection:
        if connection.execute(update(workers).where(workers.c.name == worker).values(**facts)).rowcount == 0:
            connection.execute(delete(workers).where(workers.c.at < now - 100 * _GONE))
            connection.execute(insert(workers).values(name=worker, **facts))


def present_nodes(database: Database) -> list[int]:
    """Nodes that wait on some worker and are not expelled."""
    since = database.time() - _GONE
    with database.reading() as connection:
        rows = connection.execute(select(workers.c.present).where(workers.c.at > since)).all()
        expelled = {number for (number,) in connection.execute(select(nodes.c.number).where(nodes.c.expelled))}
    return sorted({int(number) for (row,) in rows for number in np.frombuffer(row, np.int64)} - expelled)


def worker_counters(database: Database) -> Counter[str]:
    """What all workers have counted, those that are gone since lately included."""
    total: Counter[str] = Counter()
    with database.reading() as connection:
        for (text,) in connection.execute(select(workers.c.counters)):
            total.update(json.loads(text))
    return total
