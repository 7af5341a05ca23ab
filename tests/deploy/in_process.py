"""Nodes without processes: the same packets, answered at once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from fedrecplus.config import Config, change, preset
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy import server
from fedrecplus.deploy.device import CHANNELS, Policy, Store, agree, answer, save_policy
from fedrecplus.deploy.device.missed import Past
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.operate.runs import deal_out
from fedrecplus.deploy.server import CoordinatedRun, Database, Deployment, Lease, Link, StoredRun, export, run_of
from fedrecplus.deploy.server.schema import objects, runs
from fedrecplus.deploy.server.task_log import public_log
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.log import PublicLog
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.task import Task
from tests.waiting import GIVE_UP

MODEL = "00c0ffee"


def small_config(name: str = "fedrec+private", rounds: int = 3, **settings: Any) -> Config:
    config = change(change(preset(name), "model.factors", 4), "server.rounds", rounds)
    for path, value in settings.items():
        config = change(config, path.replace("__", "."), value)
    return config


def prepared(folder: Path, ratings: Ratings, config: Config, nodes: int = 3, **deployment: Any) -> list[NodeHome]:
    """A run folder that is ready for its first round, and a store for each node."""
    limits = replace(Deployment(nodes, model=MODEL, deadline=GIVE_UP, patience=GIVE_UP), **deployment)
    begin(folder / "run", config, limits, ItemCatalogue.of(ratings), {"dataset": "small"})
    return deal_out(ratings, folder / "nodes", nodes, config.seed)


@cache
def _empty() -> bytes:
    """A database with all tables and nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/empty.db")
        database.upgrade()
        database.close()
        return (Path(folder) / "empty.db").read_bytes()


def database_of(run: Path) -> Database:
    """A database beside a run folder."""
    run.parent.mkdir(parents=True, exist_ok=True)
    path = run.with_name(f"{run.name}.db")
    if not path.exists():
        path.write_bytes(_empty())
    return Database(f"sqlite:///{path}")


def begin(run: Path, *facts: Any, **options: Any) -> StoredRun:
    """Put a run in line in the database beside its folder."""
    return server.begin(database_of(run), run, *facts, **options)


def go_on(previous: Path, out: Path, *facts: Any, **options: Any) -> StoredRun:
    """Put a run in line that goes on with another one's model."""
    return server.go_on(database_of(out), previous, out, *facts, **options)


def change_terms(run: Path, **terms: Any) -> None:
    """Let a run that has begun have other terms."""
    kept = stored(run)
    changed = json.dumps(asdict(replace(kept.deployment, **terms)))
    with kept.database.changing() as connection:
        connection.execute(update(runs).where(runs.c.id == kept.number).values(deployment=changed))


def stored(run: Path) -> StoredRun:
    """A run folder's run."""
    return run_of(database_of(run), run)


@dataclass
class StoredPast:
    """What a run's database has of rounds that a device missed."""

    database: Database

    def log(self, task: str) -> PublicLog:
        published = public_log(self.database, task)
        assert published is not None
        return published

    def object(self, digest: str) -> bytes:
        with self.database.reading() as connection:
            content = connection.execute(select(objects.c.content).where(objects.c.digest == digest)).scalar()
        if content is None:
            raise Refusal("task", "it is gone")
        return bytes(content)


def serve(link: Link, run: Path) -> None:
    """Coordinate a run folder's run to its end, as one process would, and write the folder."""
    kept = stored(run)
    kept.resume()
    lease = Lease(kept.database)
    assert lease.take()
    try:
        with lease.kept():
            server.serve(link, CoordinatedRun(lease, kept.number))
    finally:
        export(kept, run)
        kept.database.close()


def consent(store: Path, task: Task, **demands: Any) -> None:
    """The owner's word that the device takes part in a task, with these demands and otherwise the default ones."""
    with Store.open(store) as opened:
        agree(opened, task)
        with opened.changing():
            save_policy(opened, Policy(**demands))


def allow_clear(store: Path, **demands: Any) -> None:
    """The owner's word that uploads may go in the clear, too, in whatever task."""
    with Store.open(store) as opened, opened.changing():
        save_policy(opened, Policy(channels=CHANNELS, any_task=True, **demands))


@dataclass
class InProcessLink:
    """``server.Link`` whose nodes answer while they are asked. ``tamper`` changes a node's answer."""

    homes: list[NodeHome]
    tamper: Callable[[int, Packet], Packet | Refusal | None] = lambda _, packet: packet
    past: Past | None = None
    asked: list[tuple[int, Packet]] = field(default_factory=list)
    box: dict[int, Packet | Refusal] = field(default_factory=dict)

    def nodes(self) -> list[int]:
        return list(range(1, len(self.homes) + 1))

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
        ids = {}
        for node, packet in packets.items():
            name = len(self.asked)
            self.asked.append((node, packet))
            reply = self.tamper(node, answer(packet, self.homes[node - 1].store, past=self.past))
            if reply is not None:
                self.box[name] = reply
            ids[name] = node
        return ids

    def replies(self, messages: Iterable[int]) -> list[tuple[int, Packet | Refusal]]:
        return [(name, self.box.pop(name)) for name in sorted(messages) if name in self.box]
