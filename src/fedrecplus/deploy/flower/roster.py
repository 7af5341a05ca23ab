"""Who was admitted: keys, names and numbers, in a file of the server's own.

Flower keeps keys beside messages in flight, and deals out numbers at random. Here a number follows from a key and
stays: a server that starts fills Flower's state from this file, an expelled key can come back, and a node that gets a
new key keeps its number, so that strikes and persons stay with whom they belong to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.process import check_private, write_private
from fedrecplus.errors import UserError

log = logging.getLogger("fedrecplus")
ROSTER = "nodes.json"
_OLD_DATABASE = "superlink.db"
_REGISTERED = (
    "SELECT node_id, public_key, name, registered_at FROM node WHERE status != 'unregistered' AND owner_aid != ''"
)
LONGEST_NAME = 40


class Admitted(msgspec.Struct, frozen=True):
    """A node that was let in."""

    number: int
    key: str
    """public, PEM"""
    name: str = ""
    since: str = ""
    expelled: str = ""
    """when; empty where it may connect"""


class Roster:
    """The nodes of a server's home, and their entries in Flower's state."""

    def __init__(self, home: Path, state: Any) -> None:
        self._path, self._state, self._lock = home / ROSTER, state, threading.Lock()
        check_private(self._path)
        self._nodes = {node.number: node for node in _read(self._path)}
        self._adopt(home / _OLD_DATABASE)
        for node in self._nodes.values():
            if not node.expelled:
                self._put(node)
        self._index()

    def number_of(self, key: bytes) -> int | None:
        """The number of a node that may connect, by its public key."""
        return self._numbers.get(key)

    def all(self) -> list[Admitted]:
        """Everybody in the order they came, expelled ones too."""
        with self._lock:
            return list(self._nodes.values())

    def admit(self, key: bytes, name: str = "", instead_of: int | None = None) -> tuple[int, bool]:
        """Let a key in; returns the node's number and whether that is news. ``instead_of``: the node has a new key."""
        with self._lock:  # many may join at once
            return self._admit(key, name, instead_of)

    def _admit(self, key: bytes, name: str, instead_of: int | None) -> tuple[int, bool]:
        pem, known = key.decode(), next((one for one in self._nodes.values() if one.key == key.decode()), None)
        if instead_of is not None and instead_of not in self._nodes:
            raise UserError(f"there is no node {instead_of}", "`server nodes` lists them")
        if instead_of is not None and known is not None and known.number != instead_of:
            raise UserError(f"this key is node {known.number}'s", "make a new key on the node")
        if known is not None and not known.expelled:
            return known.number, False
        before = known if instead_of is None else self._nodes[instead_of]
        number = before.number if before is not None else self._free_number(key)
        name = _readable(name) or (before.name if before is not None else "")
        self._note(Admitted(number, pem, name, _now()))
        self._put(self._nodes[number])
        self._index()
        return number, True

    def expel(self, number: int) -> None:
        """Let a node connect no more; it stays in the list, and `admit` takes its key again."""
        with self._lock:
            node = self._nodes.get(number)
            if node is None or node.expelled:
                raise UserError(f"there is no node {number}", "`server nodes` lists them")
            self._note(msgspec.structs.replace(node, expelled=_now()))
            self._index()
        with self._state.lock:
            if (info := self._state.nodes.get(number)) is not None:
                info.online_until = info.online_until or 0.0  # Flower takes the least of it and now, and it may be None
        self._state.delete_node(private.get("flwr.common.constant.NOOP_FLWR_AID"), number)

    def _index(self) -> None:
        self._numbers = {node.key.encode(): node.number for node in self._nodes.values() if not node.expelled}

    def _note(self, node: Admitted) -> None:
        """Change an entry, on the disk first: where that is full, nothing has happened, and it can be tried again."""
        nodes = {**self._nodes, node.number: node}
        self._write(nodes)
        self._nodes = nodes

    def _write(self, nodes: dict[int, Admitted]) -> None:
        rows = [msgspec.to_builtins(node) for node in nodes.values()]
        for row in rows:
            row["number"] = str(row["number"])  # 64 bits, more than JSON's readers take
        write_private(self._path, json.dumps(rows, indent=1).encode())

    def _free_number(self, key: bytes) -> int:
        number = int.from_bytes(hashlib.sha256(key).digest()[:8], "big")
        return number if number > 1 and number not in self._nodes else number ^ (1 << 40)

    def _adopt(self, database: Path) -> None:
        """Take over who was registered before there was a list, from the database of an earlier version, and delete it.

        It holds messages that were in flight, and what is left of deleted ones.
        """
        if not database.exists():
            _delete(database)  # what a kill left beside it
            return
        known = {node.key for node in self._nodes.values()}
        try:
            with contextlib.closing(sqlite3.connect(database)) as connection:
                rows = connection.execute(_REGISTERED).fetchall()
        except sqlite3.Error as error:  # it may be all that says who was admitted, so it isn't deleted
            log_of_it = database.with_name(f"{database.name}-wal")
            if log_of_it.exists():  # it is a part of what may be restored
                log_of_it.replace(database.with_name(f"{database.name}.damaged-wal"))
            aside = database.replace(database.with_name(f"{database.name}.damaged"))
            remedy = f"who was admitted stands in {ROSTER}" if known else "admit all nodes again, or restore a backup"
            log.warning("%s can't be read (%s) and is now %s: %s", database, error, aside.name, remedy)
            return
        for number, key, name, since in rows:
            number %= 2**64
            if bytes(key).decode() not in known and number not in self._nodes:  # a number of ours has a newer key
                self._nodes[number] = Admitted(number, bytes(key).decode(), name or "", since or _now())
        self._write(self._nodes)
        _delete(database)

    def _put(self, node: Admitted) -> None:
        """Register a node under its number, instead of whoever had the number or the key."""
        state, key = self._state, node.key.encode()
        owner = [private.get(f"flwr.common.constant.NOOP_{what}") for what in ("FLWR_AID", "ACCOUNT_NAME")]
        with state.lock:
            before = {node.number, state.node_public_key_to_node_id.get(key)}
            for info in [state.nodes[number] for number in before if number in state.nodes]:
                del state.nodes[info.node_id], state.node_public_key_to_node_id[info.public_key]
                state.owner_to_node_ids[info.owner_aid].discard(info.node_id)
            drawn = state.create_node(*owner, key, 30.0, name=node.name or None)
            info = state.nodes.pop(drawn)
            info.node_id = node.number
            state.nodes[node.number] = info
            state.node_public_key_to_node_id[key] = node.number
            state.owner_to_node_ids[owner[0]].discard(drawn)
            state.owner_to_node_ids[owner[0]].add(node.number)


def _delete(database: Path) -> None:
    for end in ("", "-wal", "-shm"):
        database.with_name(database.name + end).unlink(missing_ok=True)


def _read(path: Path) -> list[Admitted]:
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_bytes())
        return msgspec.convert([{**row, "number": int(row["number"])} for row in rows], list[Admitted])
    except (ValueError, TypeError, KeyError, msgspec.ValidationError) as error:
        remedy = "restore it from a backup (`server restore`), or admit all nodes again"
        raise UserError(f"{path}: {error}", remedy) from None


def _readable(name: str) -> str:
    """A name for the operator's terminal: no control characters, not long."""
    return "".join(letter for letter in name if letter.isprintable())[:LONGEST_NAME].strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
