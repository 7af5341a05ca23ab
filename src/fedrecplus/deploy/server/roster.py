"""Who may connect: nodes by their keys, and invitations that let one key in, once.

A node's number follows from its first key and stays: one that gets a new key keeps its strikes and persons. Codes have
120 bits and stand in the database as hashes.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.presence import present_nodes
from fedrecplus.deploy.server.schema import invitations, nodes
from fedrecplus.deploy.wire.identities import identity_number
from fedrecplus.errors import UserError

LONGEST_NAME = 40
MOST_OPEN = 1000


@dataclass(frozen=True)
class Roster:
    """The nodes of a database."""

    database: Database

    def admit(self, key: bytes, name: str = "", instead_of: int | None = None) -> tuple[int, bool]:
        """Let a key in; returns its node's number, and whether that is news. ``instead_of``: that node's new key."""
        with self.database.changing() as connection:
            return _admit(connection, key.hex(), name[:LONGEST_NAME], instead_of)

    def expel(self, number: int) -> None:
        """Let a node connect no more."""
        with self.database.changing() as connection:
            expelled = {"expelled": True, "admitted_at": _later(connection)}
            if connection.execute(update(nodes).where(nodes.c.number == number).values(**expelled)).rowcount == 0:
                raise UserError(f"there is no node {number}", "`fedrecplus server nodes` lists them")

    def everybody(self) -> list[dict[str, Any]]:
        """All nodes, and who of them is here."""
        here = set(present_nodes(self.database))
        with self.database.reading() as connection:
            rows = connection.execute(select(nodes).order_by(nodes.c.admitted_at)).all()
        return [
            {
                "number": int(row.number), "name": row.name, "key": row.key, "admitted_at": row.admitted_at,
                "status": "expelled" if row.expelled else "online" if row.number in here else "offline",
            }
            for row in rows
        ]  # fmt: skip

    def number_of(self, key: str) -> int | None:
        """The number of a key that may connect."""
        with self.database.reading() as connection:
            query = select(nodes.c.number).where((nodes.c.key == key) & ~nodes.c.expelled)
            number = connection.execute(query).scalar()
        return None if number is None else int(number)

    def version(self) -> tuple[Any, ...]:
        """Another one whenever somebody was admitted, expelled or got another key."""
        with self.database.reading() as connection:
            counted = connection.execute(select(func.count(nodes.c.number), func.max(nodes.c.admitted_at))).one()
        return tuple(counted)

    def invite(self, name: str, seconds: float) -> str:
        """A new code."""
        code, now = secrets.token_urlsafe(15), self.database.time()
        with self.database.changing() as connection:
            connection.execute(delete(invitations).where(invitations.c.until < now))
            unused = select(func.count()).select_from(invitations).where(invitations.c.key.is_(None))
            if connection.execute(unused).scalar_one() >= MOST_OPEN:
                raise UserError(f"{MOST_OPEN} invitations are open", "wait until some expire")
            facts = {"name": name[:LONGEST_NAME], "until": now + seconds}
            connection.execute(insert(invitations).values(code=_hash(code), **facts))
        return code

    def enrol(self, code: str, key: bytes, wished: str) -> tuple[int, str] | None:
        """The number and name of a key that comes with a code; None where it is no code, another's, or has expired.

        The answer may be lost on the way, so a code goes on working for the key that used it, until it expires. One
        that was expelled comes back by no old link.
        """
        now = self.database.time()
        with self.database.changing() as connection:
            same = invitations.c.code == _hash(code)
            row = connection.execute(select(invitations).where(same).with_for_update()).first()
            if row is None or row.until < now or row.key not in (None, key.hex()):
                return None
            name = row.name or wished[:LONGEST_NAME]
            if row.key is not None:
                mine = (nodes.c.key == key.hex()) & ~nodes.c.expelled
                number = connection.execute(select(nodes.c.number).where(mine)).scalar()
                return None if number is None else (int(number), name)
            connection.execute(update(invitations).where(same).values(key=key.hex()))
            return _admit(connection, key.hex(), name, None)[0], name


def _admit(connection: Connection, key: str, name: str, instead_of: int | None) -> tuple[int, bool]:
    known = connection.execute(select(nodes).where(nodes.c.key == key)).first()
    facts: dict[str, Any] = {"expelled": False, "admitted_at": _later(connection), **({"name": name} if name else {})}
    if instead_of is not None:
        if known is not None:
            raise UserError(f"this key is node {known.number}'s already", "give a new key")
        changed = update(nodes).where(nodes.c.number == instead_of).values(key=key, **facts)
        if connection.execute(changed).rowcount == 0:
            raise UserError(f"there is no node {instead_of}", "`fedrecplus server nodes` lists them")
        return instead_of, True
    if known is not None:
        if known.expelled:
            connection.execute(update(nodes).where(nodes.c.key == key).values(**facts))
        return int(known.number), bool(known.expelled)
    number = identity_number(bytes.fromhex(key))
    connection.execute(insert(nodes).values(number=number, key=key, **{"name": "", **facts}))
    return number, True


def _later(connection: Connection) -> float:
    """Now, and later than any change before, whatever clock that had: workers see by the latest that there was one."""
    last = connection.execute(select(func.max(nodes.c.admitted_at))).scalar() or 0.0
    return max(time.time(), last + 1e-3)


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()
