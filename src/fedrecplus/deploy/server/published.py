"""The models that a server has published, in its database: nodes that join get the current one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.schema import models, objects
from fedrecplus.deploy.wire.questions import object_digest
from fedrecplus.errors import UserError
from fedrecplus.training import MODEL, finished_model


@dataclass(frozen=True)
class ModelOnServer:
    """One published model."""

    number: int
    digest: str
    when: str
    figures: dict[str, Any]
    made: dict[str, Any]
    current: bool


@dataclass(frozen=True)
class PublishedModels:
    """The table of published models; numbered, and one of them is current."""

    database: Database

    def publish(self, run: Path, allow: Collection[str] = ()) -> ModelOnServer:
        """Take a finished run's public model and make it current; one that is here already is made current again."""
        model, facts = finished_model(run, allow)
        with tempfile.TemporaryDirectory() as folder:
            model.write(Path(folder))
            content = (Path(folder) / MODEL).read_bytes()
        digest = object_digest(content)
        with self.database.changing() as connection:
            keep_object(connection, content)
            number = connection.execute(select(models.c.number).where(models.c.digest == digest)).scalar()
            if number is None:
                number = 1 + (connection.execute(select(func.max(models.c.number))).scalar() or 0)
                values = {"number": number, "digest": digest, "facts": json.dumps(facts), "current": False}
                connection.execute(insert(models).values(**values))
            _point_to(connection, int(number))
        return next(one for one in self.models() if one.number == number)

    def models(self) -> list[ModelOnServer]:
        """All that was published, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(models).order_by(models.c.number)).all()
        return [ModelOnServer(row.number, row.digest, current=row.current, **json.loads(row.facts)) for row in rows]

    def current(self) -> ModelOnServer | None:
        """The one to use; None where nothing was published."""
        return next((one for one in self.models() if one.current), None)

    def rollback(self, number: int | None = None) -> ModelOnServer:
        """Make an earlier model current: the one before the current one, or any by its number."""
        known, now = self.models(), self.current()
        if number is None:
            number = max((one.number for one in known if now is not None and one.number < now.number), default=None)
        chosen = next((one for one in known if one.number == number), None)
        if chosen is None:
            there = ", ".join(str(one.number) for one in known) or "none"
            raise UserError("the server has no such model, or none before the current one", f"there are {there}")
        with self.database.changing() as connection:
            _point_to(connection, chosen.number)
        return chosen


def keep_object(connection: Connection, content: bytes) -> str:
    """Have it for good, by its digest, for whoever knows that; returns the digest."""
    digest = object_digest(content)
    if connection.execute(update(objects).where(objects.c.digest == digest).values(until=None)).rowcount == 0:
        connection.execute(insert(objects).values(digest=digest, content=content, until=None))
    return digest


def _point_to(connection: Connection, number: int) -> None:
    connection.execute(update(models).values(current=False))
    connection.execute(update(models).where(models.c.number == number).values(current=True))
