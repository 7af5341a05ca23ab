"""A witness: somebody who is not the server keeps the heads of its logs, and signs them.

A server that tells two people two logs tells the witness one of them at most. Whoever has the witness's file finds out
which of their own logs it doesn't have (``fedrecplus device log --witness``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fedrecplus.deploy.node.connection import Rejected, ServerConnection
from fedrecplus.deploy.wire.log import LogHead, PublicLog, split_leaves
from fedrecplus.deploy.wire.packet import Refusal
from fedrecplus.deploy.wire.task import Task
from fedrecplus.errors import UserError
from fedrecplus.files import beside, write_private, write_text

HEADS, LEAVES, _KEY = "heads.jsonl", "leaves", "witness.key"


def fetch_log(server: ServerConnection, task: str) -> tuple[LogHead, list[str]]:
    """A task's log from its server, with its entries, of which the first is the task."""
    content = server.ask("GET", f"/v1/log/{task}", remedy="check the digest: `deploy run` writes it into its folder")
    try:
        published = msgspec.msgpack.decode(content, type=PublicLog)
        return published.head(task), published.entries
    except (msgspec.MsgspecError, Refusal):
        raise UserError(f"{server.host}:{server.port} told no log", "check that a fedrecplus server is there") from None


@dataclass(frozen=True)
class ServerPast:
    """What a server keeps of its tasks' rounds, for a device that missed some."""

    server: ServerConnection

    def log(self, task: str) -> PublicLog:
        """A task's log."""
        return msgspec.msgpack.decode(self._call(f"/v1/log/{task}"), type=PublicLog)

    def object(self, digest: str) -> bytes:
        """The bytes of that digest."""
        return self._call(f"/v1/objects/{digest}")

    def _call(self, target: str) -> bytes:
        try:
            return self.server.call("GET", target)
        except Rejected as error:
            raise Refusal("task", f"what its server should keep of missed rounds isn't there ({error})") from None


def witness_log(home: Path, head: LogHead, entries: list[str]) -> dict[str, Any]:
    """Look at a log beside what it was, keep it, and sign its head; a UserError where it isn't what it was, grown."""
    try:
        head.check(Task.parse(entries[0]))
    except (Refusal, ValueError, IndexError) as error:
        raise UserError(f"this is no log of task {head.task[:16]}: {error}", "check the task's digest") from None
    kept = home / LEAVES / head.task
    before = split_leaves(kept.read_bytes()) if kept.exists() else ()
    if not head.goes_on_with(before[: len(head.leaves)]):
        raise UserError(
            f"the server told another log of task {head.task[:16]} before: it was rewritten",
            f"keep {home}: what it signed then and now is the proof",
        )
    line: dict[str, Any] = {"task": head.task, "size": len(head.leaves), "root": head.root.hex()}
    line |= {"server": head.signature.hex(), "witness": _key(home).sign(head.statement).hex()}
    if len(head.leaves) > len(before):
        earlier = (home / HEADS).read_text(encoding="utf-8") if (home / HEADS).exists() else ""
        write_text(
            home / HEADS, earlier + json.dumps(line) + "\n"
        )  # first: a head may stand there twice, and is never lost
        with beside(kept) as temporary:
            temporary.write_bytes(b"".join(head.leaves))
    return line


def witness_key(home: Path) -> str:
    """The public key that a witness signs with, in hexadecimal."""
    return _key(home).public_key().public_bytes_raw().hex()


def read_heads(path: Path, key: str = "") -> list[tuple[str, int, str]]:
    """Task, leaves and root of each head in a witness's file; with its ``key``, of those that it has signed."""
    heads = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UserError(f"{path}: {error}", "give the witness's heads.jsonl") from None
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            head = (str(line["task"]), int(line["size"]), str(line["root"]))
            if key:
                Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
                    bytes.fromhex(line["witness"]), LogHead.statement_of(*head)
                )
        except (ValueError, KeyError, TypeError, InvalidSignature):
            raise UserError(f"{path}, line {number}: no head that this witness signed", "get the file anew") from None
        heads.append(head)
    return heads


def _key(home: Path) -> Ed25519PrivateKey:
    """The witness's own; made on first use."""
    path = home / _KEY
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, Ed25519PrivateKey.generate().private_bytes_raw())
    return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
