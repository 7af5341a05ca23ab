"""The server's side of the tasks' public logs: leaves in the database, signed by a key that every task names."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, insert, select, update

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.published import keep_object
from fedrecplus.deploy.server.schema import log, objects, signing_keys
from fedrecplus.deploy.wire.log import LogHead, PublicLog, leaf_hash, leaf_subject
from fedrecplus.errors import UserError

_KEY = "log"


def log_key(connection: Connection) -> Ed25519PrivateKey:
    """The key that signs logs; made on first use, in a transaction that writes."""
    row = connection.execute(select(signing_keys.c.content).where(signing_keys.c.name == _KEY)).first()
    if row is not None:
        return Ed25519PrivateKey.from_private_bytes(bytes(row.content))
    key = Ed25519PrivateKey.generate()
    connection.execute(insert(signing_keys).values(name=_KEY, content=key.private_bytes_raw()))
    return key


def append(connection: Connection, task: str, number: int, leaf: str) -> str:
    """Write a leaf at its place, and return what is there: a round that is asked for again is the same round."""
    row = connection.execute(select(log.c.leaf).where((log.c.task == task) & (log.c.number == number))).first()
    if row is None:
        connection.execute(insert(log).values(task=task, number=number, leaf=leaf))
        return leaf
    if leaf_subject(row.leaf) != leaf_subject(leaf):
        raise UserError(
            f"leaf {number} of task {task[:16]}'s log is of another table or sum: devices would refuse the round",
            "begin a new run: the log says that this one went on otherwise",
        )
    return str(row.leaf)


def keep_sum(connection: Connection, task: str, number: int, content: bytes, kept: int) -> None:
    """Have the sum of a leaf for devices that missed its round, and no longer the one of so many leaves before."""
    here = log.c.task == task
    sums = update(log).where(here & (log.c.number == number))
    connection.execute(sums.values(sum=keep_object(connection, content)))
    old = here & (log.c.number < number - kept) & log.c.sum.is_not(None)
    digests = list(connection.execute(select(log.c.sum).where(old)).scalars())
    connection.execute(update(objects).where(objects.c.digest.in_(digests)).values(until=0.0))
    connection.execute(update(log).where(old).values(sum=None))


def head_of(connection: Connection, task: str) -> LogHead | None:
    """The signed log of a task; None where there is none."""
    log_of_task = _public_log(connection, task)
    return None if log_of_task is None else log_of_task.head(task)


def public_log(database: Database, task: str) -> PublicLog | None:
    """The same for whoever looks, with its entries and the names of the sums that are kept."""
    with database.reading() as connection:
        return _public_log(connection, task)


def _public_log(connection: Connection, task: str) -> PublicLog | None:
    """All from one query: leaves that were signed, and their entries."""
    rows = connection.execute(select(log.c.leaf, log.c.sum).where(log.c.task == task).order_by(log.c.number)).all()
    if not rows:
        return None
    head = LogHead.signed(task, [leaf_hash(row.leaf) for row in rows], log_key(connection))
    return PublicLog(b"".join(head.leaves), head.signature, [row.leaf for row in rows], [row.sum or "" for row in rows])
