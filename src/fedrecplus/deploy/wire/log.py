"""The public log of a task: what it is, and for each round V, the sum before it, the items, of how many people, and ε.

A round's place in the log is fixed: one leaf for each, after the task itself. The root over all leaves up to a round is
part of the name of that round's sum, so devices that were told another log can't be in one sum; and whoever has seen a
log finds out whether a later one goes on with it. It is a Merkle tree. Hashes of leaves travel whole, 32 bytes for a
round: with them anybody computes every earlier root.

After: Laurie, Langley and Kasper 2013 (RFC 6962, certificate transparency)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from numpy.typing import NDArray

from fedrecplus.deploy.wire.packet import Facts, Refusal
from fedrecplus.deploy.wire.task import Task

HASH_BYTES = 32
LOG = "log."
"""how the names of its arrays begin"""
_LEAVES, _SIGNED = f"{LOG}leaves", f"{LOG}signature"
_CONTEXT = b"fedrecplus log head"


def leaf_hash(content: str) -> bytes:
    """Of one entry."""
    return hashlib.sha256(b"\x00" + content.encode()).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over hashes of leaves.

    >>> root_of([leaf_hash("a"), leaf_hash("b")]) == hashlib.sha256(b"\\x01" + leaf_hash("a") + leaf_hash("b")).digest()
    True
    """
    if len(leaves) <= 1:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def round_leaf(
    round_number: int, tables: str, sums: str, items: str, people: int, epsilon: float, rounds: int = 0
) -> str:
    """The entry of a round: digests of its tables, the sum behind them and the items, and what that sum was of.

    ``rounds`` is how many the run of that sum had, by which its last steps are smaller.
    """
    facts: Facts = {"round": round_number, "V": tables, "sum": sums, "items": items, "rounds": rounds}
    return json.dumps({**facts, "people": people, "epsilon": epsilon}, sort_keys=True)


def leaf_subject(leaf: str) -> Facts:
    """What an entry is about: the task, or a round with its table and sum."""
    facts: Facts = json.loads(leaf)
    return {name: value for name, value in facts.items() if name not in ("people", "epsilon")}


@dataclass(frozen=True)
class LogHead:
    """A log as it is told: hashes of all leaves, and the server's signature over the root."""

    task: str
    """digest"""
    leaves: tuple[bytes, ...]
    signature: bytes = b""

    @property
    def root(self) -> bytes:
        """Over all leaves."""
        return root_of(self.leaves)

    @property
    def statement(self) -> bytes:
        """What is signed."""
        return self.statement_of(self.task, len(self.leaves), self.root.hex())

    @staticmethod
    def statement_of(task: str, size: int, root: str) -> bytes:
        """What is signed of a head: task, leaves and root."""
        return _CONTEXT + bytes.fromhex(task) + size.to_bytes(8, "big") + bytes.fromhex(root)

    @classmethod
    def signed(cls, task: str, leaves: Sequence[bytes], key: Ed25519PrivateKey) -> LogHead:
        """By the key that the task names."""
        unsigned = cls(task, tuple(leaves))
        return cls(task, tuple(leaves), key.sign(unsigned.statement))

    def check(self, task: Task) -> None:
        """Refuse a log that isn't the task's, or that the task's key hasn't signed."""
        if task.digest != self.task or not self.leaves or self.leaves[0] != leaf_hash(task.text):
            raise Refusal("log", "a log of another task")
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(task.log)).verify(self.signature, self.statement)
        except (InvalidSignature, ValueError):
            raise Refusal("log", "a log that the task's key has not signed") from None

    def goes_on_with(self, earlier: Sequence[bytes]) -> bool:
        """Whether everything that was in the log is in it still."""
        return tuple(earlier) == self.leaves[: len(earlier)]

    def arrays(self) -> dict[str, NDArray[np.uint8]]:
        """As it travels."""
        return {
            _LEAVES: np.frombuffer(b"".join(self.leaves), np.uint8),
            _SIGNED: np.frombuffer(self.signature, np.uint8),
        }

    @classmethod
    def of_arrays(cls, task: str, arrays: dict[str, NDArray[np.uint8]]) -> LogHead | None:
        """What ``arrays`` made, taken out of these; None where there is none."""
        leaves, signature = arrays.pop(_LEAVES, None), arrays.pop(_SIGNED, None)
        if leaves is None or signature is None:
            return None
        return cls(task, split_leaves(leaves.tobytes()), signature.tobytes())


class PublicLog(msgspec.Struct, frozen=True):
    """A task's log as its server tells it to whoever looks."""

    leaves: bytes
    signature: bytes
    entries: list[str]
    sums: list[str]
    """beside each entry the digest of the object with its sum; empty where the server hasn't one"""

    def head(self, task: str) -> LogHead:
        """It without the entries."""
        return LogHead(task, split_leaves(self.leaves), self.signature)


def split_leaves(content: bytes) -> tuple[bytes, ...]:
    """Hashes that were put end to end."""
    return tuple(content[at : at + HASH_BYTES] for at in range(0, len(content), HASH_BYTES))
