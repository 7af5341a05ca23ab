"""A run in the database: its settings, journal, checkpoint and pending sum; read by anybody, written by one.

The coordinator writes within ``CoordinatedRun.changing``, which holds its lease: a round's journal line, ledger and
checkpoint are there together or not at all, and nothing comes from a coordinator that isn't one any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, select, update

from fedrecplus.config import Config, dumps, loads
from fedrecplus.deploy.server.database import Database, Result
from fedrecplus.deploy.server.lease import Lease
from fedrecplus.deploy.server.schema import answers, journal, ledger, runs, work
from fedrecplus.deploy.server.terms import Deployment
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.steps import sums_told
from fedrecplus.engines import SimulationState
from fedrecplus.errors import UserError
from fedrecplus.protocol import Sums
from fedrecplus.training import Checkpoint, Tally

QUEUED, RUNNING, FINISHED, FAILED, STOPPED = "queued", "running", "finished", "failed", "stopped"
_BETWEEN = 0.5
"""seconds between two words on where a run is"""


class Stopped(Exception):
    """The operator wants the run to end."""


@dataclass
class StoredRun:
    """A run as anybody with the database reads it."""

    database: Database
    number: int

    @classmethod
    def create(
        cls, connection: Connection, config: Config, deployment: Deployment, catalogue: ItemCatalogue,
        data: Mapping[str, Any], checkpoint: Checkpoint | None = None, told: Mapping[str, NDArray[Any]] | None = None,
    ) -> int:  # fmt: skip
        """A run that waits for a coordinator; returns its number."""
        facts = {
            "model": deployment.model, "config": dumps(config), "deployment": json.dumps(asdict(deployment)),
            "data": json.dumps(data), "catalogue": Packet({}, catalogue.arrays()).to_bytes(), "phase": QUEUED,
            "stop": False, "progress": "{}", "begun_at": time.time(),
            "checkpoint": None if checkpoint is None else _to_bytes(checkpoint),
            "told": Packet({}, dict(told)).to_bytes() if told else None,
        }  # fmt: skip
        result = connection.execute(insert(runs).values(**facts))
        assert result.inserted_primary_key is not None
        return int(result.inserted_primary_key[0])

    @classmethod
    def newest(cls, database: Database) -> StoredRun | None:
        """The run that began last."""
        with database.reading() as connection:
            number = connection.execute(select(runs.c.id).order_by(runs.c.id.desc()).limit(1)).scalar()
        return None if number is None else cls(database, int(number))

    @classmethod
    def next_in_line(cls, database: Database) -> StoredRun | None:
        """The oldest run that somebody should work on: one whose coordinator died, or that nobody began."""
        open_ones = runs.c.phase.in_([QUEUED, RUNNING])
        with database.reading() as connection:
            number = connection.execute(select(runs.c.id).where(open_ones).order_by(runs.c.id).limit(1)).scalar()
        return None if number is None else cls(database, int(number))

    def config(self, allow: list[str] | None = None) -> Config:
        """Its settings."""
        return loads(self._value(runs.c.config), f"run {self.number}", allow=allow)

    @property
    def deployment(self) -> Deployment:
        """When its rounds begin and end."""
        return Deployment.of_json(self._value(runs.c.deployment))

    @property
    def data(self) -> dict[str, Any]:
        """What it is trained on."""
        return dict(json.loads(self._value(runs.c.data)))

    @property
    def catalogue(self) -> ItemCatalogue:
        """Its items."""
        return ItemCatalogue.of_arrays(Packet.of_bytes(bytes(self._value(runs.c.catalogue))).arrays)

    @property
    def phase(self) -> str:
        """Where it is: ``queued``, ``running``, ``finished``, ``failed`` or ``stopped``."""
        return str(self._value(runs.c.phase))

    def progress(self) -> dict[str, Any]:
        """What its coordinator said last."""
        return dict(json.loads(self._value(runs.c.progress)))

    def checkpoint(self) -> Checkpoint | None:
        """The state after its last round."""
        content = self._value(runs.c.checkpoint)
        return None if content is None else _of_bytes(bytes(content))

    def sums(self) -> list[Sums] | None:
        """The sums of its last round, as devices are told them."""
        content = self._value(runs.c.told)
        return None if content is None else sums_told(Packet.of_bytes(bytes(content)).arrays)

    def pending(self) -> bytes | None:
        """A secure sum that is being unmasked."""
        content = self._value(runs.c.pending)
        return None if content is None else bytes(content)

    def closed_rounds(self) -> int:
        """The last round in the journal; 0 where there is none."""
        with self.database.reading() as connection:
            query = select(func.max(journal.c.round)).where(journal.c.run == self.number)
            return int(connection.execute(query).scalar() or 0)

    def lines(self, after: int = 0) -> list[dict[str, Any]]:
        """The journal: a line for each round, of those after one."""
        later = (journal.c.run == self.number) & (journal.c.round > after)
        return self._texts(select(journal.c.line).where(later).order_by(journal.c.round))

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``."""
        return self._texts(select(journal.c.metrics).where(journal.c.run == self.number).order_by(journal.c.round))

    def stop(self) -> None:
        """Ask its coordinator to end it; a run that nobody works on is ended here."""
        with self.changing() as connection:
            mine = runs.c.id == self.number
            connection.execute(update(runs).where(mine).values(stop=True))
            connection.execute(update(runs).where(mine & (runs.c.phase == QUEUED)).values(phase=STOPPED))

    def resume(self) -> None:
        """Put it in line again."""
        with self.changing() as connection:
            ended = (runs.c.id == self.number) & runs.c.phase.in_([FAILED, STOPPED])
            connection.execute(update(runs).where(ended).values(phase=QUEUED, stop=False, progress="{}"))

    def pardon(self) -> None:
        """Forget strikes and who spoke for whom: all nodes are asked again, and people may come through other ones."""
        if self.phase in (QUEUED, RUNNING):
            raise UserError(f"run {self.number} is at work", "stop it first")
        with self.changing() as connection:
            for line in self.lines():
                line["bound"], line.setdefault("refusals", {})["strikes"] = {}, {}
                where = (journal.c.run == self.number) & (journal.c.round == line["round"])
                connection.execute(update(journal).where(where).values(line=json.dumps(line)))

    @cached_property
    def book(self) -> DatabaseBook:
        """The ledger's lines of its model."""
        return DatabaseBook(self.database, str(self._value(runs.c.model)), self.changing)

    def changing(self) -> contextlib.AbstractContextManager[Connection]:
        """A transaction."""
        return self.database.changing()

    def _value(self, column: Any) -> Any:
        def read() -> Any:
            with self.database.reading() as connection:
                return connection.execute(select(column).where(runs.c.id == self.number)).first()

        row = self.database.patiently(read)
        if row is None:
            raise UserError(f"there is no run {self.number} in the database", "check --home and --out")
        return row[0]

    def _texts(self, query: Any) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            with self.database.reading() as connection:
                return [json.loads(text) for (text,) in connection.execute(query)]

        return self.database.patiently(read)


@dataclass
class DatabaseBook:
    """The releases of one model, in the table ``ledger``."""

    database: Database
    model: str
    changing: Callable[[], contextlib.AbstractContextManager[Connection]]

    def lines(self) -> list[dict[str, Any]]:
        """All that were noted."""
        with self.database.reading() as connection:
            query = select(ledger.c.line).where(ledger.c.model == self.model).order_by(ledger.c.number)
            return [json.loads(text) for (text,) in connection.execute(query)]

    def add(self, line: dict[str, Any]) -> None:
        """Note one more, in the transaction that is open or in one of its own."""
        with self.changing() as connection:
            connection.execute(insert(ledger).values(model=self.model, line=json.dumps(line)))


class CoordinatedRun(StoredRun):
    """A run while this process works on it."""

    def __init__(self, lease: Lease, number: int) -> None:
        super().__init__(lease.database, number)
        self.lease = lease
        self._open: Connection | None = None
        self._said: dict[str, Any] = {}
        self._said_at = 0.0

    @contextlib.contextmanager
    def changing(self) -> Iterator[Connection]:
        """The coordinator's transaction; within another one it is that one."""
        if self._open is not None:
            yield self._open
            return
        with self.lease.changing() as connection:
            self._open = connection
            try:
                yield connection
            finally:
                self._open = None

    def change(self, call: Callable[[Connection], Result]) -> Result:
        """Do something in a transaction, again while the database is away."""

        def once() -> Result:
            with self.changing() as connection:
                return call(connection)

        return once() if self._open is not None else self.database.patiently(once)

    def set(self, **facts: Any) -> None:
        """Change columns of the run."""
        self.change(lambda connection: connection.execute(update(runs).where(runs.c.id == self.number).values(**facts)))

    def begin(self) -> None:
        """Say that this process works on it; questions that an earlier one asked are nobody's any more."""
        self.set(phase=RUNNING)
        self.change(close_questions)

    def end(self, phase: str, **said: Any) -> None:
        """Say that it is over, and why; nobody is asked anything any more."""

        now = self.database.patiently(self.database.time)

        def write(connection: Connection) -> None:
            self.set(phase=phase, progress=json.dumps({"phase": phase, "at": now, **said}))
            close_questions(connection)

        self.change(write)

    def set_catalogue(self, catalogue: ItemCatalogue) -> None:
        """Go on with other figures of the items."""
        self.set(catalogue=Packet({}, catalogue.arrays()).to_bytes(), pending=None)

    def set_progress(self, **facts: Any) -> None:
        """Say where the run is now, to whoever follows it, now and then; ``Stopped`` where somebody wants it to end."""
        same_stage = all(facts.get(key) == self._said.get(key) for key in ("phase", "round", "stage"))
        if same_stage and time.monotonic() - self._said_at < _BETWEEN:
            return
        self._said, self._said_at = facts, time.monotonic()
        now = self.database.patiently(self.database.time)
        self.set(progress=json.dumps({**facts, "pid": os.getpid(), "at": now}))
        if self._value(runs.c.stop):
            raise Stopped

    def close_round(
        self, line: Mapping[str, Any], metrics: Mapping[str, Any], checkpoint: Checkpoint,
        told: Mapping[str, NDArray[Any]],
    ) -> None:  # fmt: skip
        """A round's journal line, metrics, checkpoint and the sum that is told in the next one, at once."""
        facts = {"line": json.dumps(line), "metrics": json.dumps(metrics)}

        def write(connection: Connection) -> None:
            connection.execute(insert(journal).values(run=self.number, round=line["round"], **facts))
            self.set(checkpoint=_to_bytes(checkpoint), pending=None, told=Packet({}, dict(told)).to_bytes())

        self.change(write)


def close_questions(connection: Connection) -> None:
    """Take all questions and answers away: one coordinator asks at a time, and it asks for something else now.

    The newest question stays, and is over: numbers go on from it, whatever the next coordinator's clock says.
    """
    connection.execute(delete(answers))
    connection.execute(delete(work).where(work.c.id < select(func.max(work.c.id)).scalar_subquery()))
    connection.execute(update(work).values(until=0.0))


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    facts = {"tally": checkpoint.tally.to_dict(), "retries": checkpoint.retries}
    return Packet({"facts": json.dumps(facts)}, checkpoint.state.arrays()).to_bytes()


def _of_bytes(content: bytes) -> Checkpoint:
    packet = Packet.of_bytes(content)
    facts = json.loads(str(packet.facts["facts"]))
    return Checkpoint(SimulationState.of_arrays(packet.arrays), Tally(**facts["tally"]), facts["retries"])
