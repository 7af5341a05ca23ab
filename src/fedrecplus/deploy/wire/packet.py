"""A message as plain facts and arrays, its one encoding (MessagePack), and which sides understand each other."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedrecplus import __version__

Facts = dict[str, str | int | float]
_NUMBERS = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")
}
"""what arrays are of, by the names that travel; little-endian"""
_MOST_ARRAYS, _MOST_AXES = 64, 4
PROTOCOL = 12
"""raised whenever a message, or a setting's default, changes its meaning; sides with different numbers refuse each
other by name. A new setting, whose default is what was done before, changes nothing: see ``wire.settings``"""
REASONS = (
    "version", "request", "rule", "catalogue", "scale", "settings", "policy", "sum", "storage", "store", "fault",
    "paused", "task", "log",
)  # fmt: skip
"""all that a node ever says when it can't take part: no text of an error, which might quote a rating"""


class Refusal(Exception):
    """A message that is not taken. ``kind`` is one word; ``blame`` says whether it counts against the sender.

    The detail may quote the other side, and goes to logs and terminals.
    """

    def __init__(self, kind: str, detail: str = "", *, blame: bool = True) -> None:
        super().__init__(one_line(f"{kind}: {detail}") if detail else kind)
        self.kind, self.blame = kind, blame


def one_line(text: str) -> str:
    """What another side said, for a log or a terminal: nothing in it begins a line or moves a cursor.

    >>> one_line("a\\x1b[2J\\nround 7: all is well")
    'a [2J round 7: all is well'
    """
    return "".join(mark if mark.isprintable() else " " for mark in text)


@dataclass(frozen=True)
class Packet:
    """Facts and arrays by name."""

    facts: Facts
    arrays: dict[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return sum(table.nbytes for table in self.arrays.values())

    @property
    def digest(self) -> str:
        """A short name: the beginning of ``sha256``."""
        return self.sha256.hex()[:32]

    @property
    def sha256(self) -> bytes:
        """A hash over facts and arrays, their names, types and shapes."""
        hashed = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode())
        for name, table in sorted(self.arrays.items()):
            hashed.update(f"{name} {table.dtype} {table.shape}".encode())
            hashed.update(np.ascontiguousarray(table).tobytes())
        return hashed.digest()

    def to_bytes(self) -> bytes:
        """For the network, a file or a column of a database: a map of facts, and of arrays as type, shape and bytes."""
        return _ENCODER.encode(_Body(self.facts, {name: _Array.of(table) for name, table in self.arrays.items()}))

    @classmethod
    def of_bytes(cls, content: bytes) -> Packet:
        """What ``to_bytes`` made; ``Refusal`` for anything else. Nothing in it is run: no pickle, no code."""
        try:
            body = _DECODER.decode(content)
            if len(body.arrays) > _MOST_ARRAYS:
                raise ValueError
            return cls(body.facts, {name: one.table() for name, one in body.arrays.items()})
        except (KeyError, ValueError, OverflowError, msgspec.MsgspecError, RecursionError) as error:
            raise Refusal("malformed", type(error).__name__) from None


class _Array(msgspec.Struct, array_like=True):
    """An array as it travels."""

    kind: str
    shape: list[int]
    content: memoryview

    @classmethod
    def of(cls, table: NDArray[Any]) -> _Array:
        kind = table.dtype.name
        return cls(kind, list(table.shape), memoryview(np.ascontiguousarray(table, dtype=_NUMBERS[kind]).tobytes()))

    def table(self) -> NDArray[Any]:
        """The array itself, over the bytes that came; refuses a shape that they don't fill."""
        if len(self.shape) > _MOST_AXES or any(not 0 <= length < 2**40 for length in self.shape):
            raise ValueError
        return np.frombuffer(self.content, dtype=_NUMBERS[self.kind]).reshape(self.shape)


class _Body(msgspec.Struct):
    facts: Facts
    arrays: dict[str, _Array]


_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(_Body)

VERSION = f"fedrecplus {__version__}, protocol {PROTOCOL}"


def mismatch(theirs: object, who: str) -> str:
    """What is wrong with the other side's version, in words that say which side to upgrade; empty if nothing is.

    >>> mismatch(VERSION, "the server")
    ''
    >>> mismatch("fedrecplus 9.9, protocol 99", "the server")  # doctest: +ELLIPSIS
    'the server runs fedrecplus 9.9, protocol 99; this side runs fedrecplus ..., protocol ...: upgrade this side'
    """
    spoken = re.search(r"protocol (\d{1,6})$", str(theirs)[:80])
    number = int(spoken[1]) if spoken else 0
    if number == PROTOCOL:
        return ""
    older = who if number < PROTOCOL else "this side"
    return f"{who} runs {str(theirs)[:80]}; this side runs {VERSION}: upgrade {older}"


def check_reply(packet: Packet) -> None:
    """Refuse a reply of another version, and one in which the node says that it can't take part."""
    wrong = mismatch(packet.facts.get("version"), "the node")
    if wrong:
        raise Refusal("version", wrong, blame=False)
    if "refusal" in packet.facts:
        word = str(packet.facts["refusal"])
        if word == "version":  # the same protocol, and a setting that came after it
            raise Refusal("node-version", "it doesn't know all of the settings: upgrade the node", blame=False)
        raise Refusal(f"node-{word}" if word in REASONS else "malformed", blame=word not in REASONS)
