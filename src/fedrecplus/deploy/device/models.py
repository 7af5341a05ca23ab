"""The tables that a device has seen: which one recommendations use, which are kept, and which are let go.

The newest one is used unless the owner chose another: a run may be spoiled. Of each model the newest table is kept, the
one before it, and the last ones of earlier days and weeks. Of models that nobody asked for lately only the settings
stay, which later requests are held to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fedrecplus.deploy.device.sent import now
from fedrecplus.deploy.device.store import Store
from fedrecplus.errors import UserError

_CHOSEN = "chosen"
_DAYS, _WEEKS, _MODELS = 2, 3, 3


class SeenTable(NamedTuple):
    """A table V that a server has sent."""

    model: str
    round: int
    at: str


def seen_tables(store: Store) -> list[SeenTable]:
    """All tables that are kept, newest first."""
    query = "SELECT model, round, at FROM tables ORDER BY at DESC, round DESC"
    return [SeenTable(*row) for row in store.connection.execute(query)]


def chosen_table(store: Store) -> SeenTable:
    """The table that recommendations use: the owner's choice, or the newest."""
    tables, chosen = seen_tables(store), store.fact(_CHOSEN)
    if not tables:
        raise UserError(
            "this device has seen no model yet that this version reads",
            "join a server with `fedrecplus node join`, or give a run folder with --model",
        )
    wanted = json.loads(chosen) if chosen else None
    return next((one for one in tables if [one.model, one.round] == wanted), tables[0])


def is_chosen(store: Store) -> bool:
    """Whether the owner chose a table, so that newer ones are not used."""
    return bool(store.fact(_CHOSEN))


def choose_table(store: Store, model: str = "", round_number: int | None = None) -> SeenTable:
    """Use a table from now on, whatever comes: one before the newest unless named by its model and round."""
    tables = seen_tables(store)
    earlier = tables[1:] if not model and round_number is None else tables
    fitting = [one for one in earlier if one.model.startswith(model) and round_number in (None, one.round)]
    if not fitting:
        raise UserError("no such table is kept here", "`fedrecplus device models` lists those that are")
    with store.changing():
        store.put("facts", [(_CHOSEN, json.dumps([fitting[0].model, fitting[0].round]))])
    return fitting[0]


def use_newest(store: Store) -> None:
    """Use the newest table again."""
    with store.changing():
        store.put("facts", [(_CHOSEN, "")])


def table_of(store: Store, table: SeenTable) -> bytes:
    """A table's packet, as the store keeps it."""
    return bytes(store.value("SELECT V FROM tables WHERE model = ? AND round = ?", table.model, table.round))


def keep_table(store: Store, model: str, round_number: int, V: bytes) -> None:
    """Keep a model's newest table, within ``changing``; let earlier ones go, and what models of long ago take."""
    store.put("tables", [(model, round_number, now(), V)])
    chosen = json.loads(store.fact(_CHOSEN) or "null")
    rows = store.connection.execute(
        "SELECT model, round, at FROM tables WHERE model = ? ORDER BY at DESC, rowid DESC", (model,)
    )
    earlier = [SeenTable(*row) for row in rows][1:]
    kept = worth_keeping([one.at for one in earlier])
    for one in earlier:
        if one.at not in kept and [one.model, one.round] != chosen:
            store.connection.execute("DELETE FROM tables WHERE model = ? AND round = ?", (one.model, one.round))
    models = [other for (other,) in store.connection.execute("SELECT model FROM models ORDER BY at DESC, rowid DESC")]
    for other in models[_MODELS:]:
        if chosen is None or chosen[0] != other:
            for table in ("tables", "answers", "states"):
                store.connection.execute(f"DELETE FROM {table} WHERE model = ?", (other,))


def worth_keeping(times: Sequence[str]) -> set[str]:
    """Of times, newest first: the newest, and the last ones of some days and weeks.

    >>> sorted(worth_keeping(["2026-11-16T09:00", "2026-11-16T08:00", "2026-11-15T08:00", "2026-11-10T07:00"]))
    ['2026-11-15T08:00', '2026-11-16T09:00']
    """
    days: dict[Any, str] = {}
    weeks: dict[Any, str] = {}
    for at in times:
        date = datetime.fromisoformat(at).date()
        days.setdefault(date, at)
        weeks.setdefault(date.isocalendar()[:2], at)
    return {*times[:1], *list(days.values())[:_DAYS], *list(weeks.values())[:_WEEKS]}
