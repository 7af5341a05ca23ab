"""Protocol buffers, as far as Flower's messages to nodes need them: a device then loads neither Flower nor protobuf.

A message is a dict. Its ``Schema`` says which number, name and kind each field has; fields that it doesn't name are
skipped, as the format wants it. After: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_DEEPEST, _MOST_FIELDS = 32, 100_000
"""messages within each other, and fields of them all: Flower's have four and some dozens"""


class Malformed(ValueError):
    """Bytes that are no such message."""


class Field(NamedTuple):
    """A field of a message."""

    name: str
    kind: str | dict[int, Field]
    """``uint``, ``sint``, ``bool``, ``double``, ``text``, ``bytes``, or a message's schema; ``self`` for its own"""
    repeated: bool = False
    optional: bool = False
    """whether zero is told from nothing"""


Schema: TypeAlias = dict[int, Field]


def encode(schema: Schema, message: dict[str, Any]) -> bytes:
    """A message's bytes, fields in the order of their numbers. Empty values are left out, as Flower leaves them out."""
    parts: list[bytes] = []
    for number, field in sorted(schema.items()):
        value = message.get(field.name)
        kind = schema if field.kind == "self" else field.kind
        if field.repeated:
            parts.extend(_encode_one(number, kind, one) for one in value or ())
        elif value or (value is not None and (field.optional or isinstance(kind, dict))):
            parts.append(_encode_one(number, kind, value))
    return b"".join(parts)


def decode(schema: Schema, content: bytes | memoryview, most: int = _MOST_FIELDS) -> dict[str, Any]:
    """The message in some bytes. Fields that are missing have the empty value of their kind, messages None.

    ``most`` fields may be in it, those of messages within it included.
    """
    return _decode(schema, memoryview(content), _DEEPEST, iter(range(most)))


def split(schema: Schema, content: bytes, most: int = _MOST_FIELDS) -> tuple[bytes, bytes]:
    """The fields of a message that a schema names, and all the others: each is a message of its own.

    Whoever reads them may bound the one before it becomes many objects, and needn't copy the other.
    """
    named, others, at = bytearray(), bytearray(), 0
    for count, (number, _, _, end) in enumerate(_places(memoryview(content)), 1):
        if count > most:
            raise Malformed("too many fields")
        part = named if number in schema else others
        part += memoryview(content)[at:end]
        at = end
    return bytes(named), bytes(others)


def _decode(schema: Schema, content: memoryview, depth: int, count: Iterator[int]) -> dict[str, Any]:
    """``depth`` messages more may be within; two bytes can be a message, which takes a hundred times that here."""
    if not depth:
        raise Malformed("messages within messages")
    message = {field.name: _empty(field) for field in schema.values()}
    for number, wire, value in _fields(content):
        if next(count, None) is None:
            raise Malformed("too many fields")
        field = schema.get(number)
        if field is None:
            continue
        kind = schema if field.kind == "self" else field.kind
        if field.repeated:
            message[field.name].append(_decode_one(field.name, kind, wire, value, depth, count))
        else:
            message[field.name] = _decode_one(field.name, kind, wire, value, depth, count)
    return message


def _empty(field: Field) -> Any:
    if field.repeated:
        return []
    if field.optional or isinstance(field.kind, dict) or field.kind == "self":
        return None
    return {"uint": 0, "sint": 0, "bool": False, "double": 0.0, "text": "", "bytes": b""}[field.kind]


def _encode_one(number: int, kind: Any, value: Any) -> bytes:
    if isinstance(kind, dict):
        return _delimited(number, encode(kind, value))
    if kind == "double":
        return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
    if kind in ("text", "bytes"):
        return _delimited(number, value.encode() if kind == "text" else value)
    whole = 2 * value if value >= 0 else -2 * value - 1
    return _varint(number << 3 | _VARINT) + _varint(whole if kind == "sint" else int(value))


def _delimited(number: int, content: bytes) -> bytes:
    return b"".join((_varint(number << 3 | _BYTES), _varint(len(content)), content))


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _decode_one(name: str, kind: Any, wire: int, value: Any, depth: int, count: Iterator[int]) -> Any:
    delimited = isinstance(kind, dict) or kind in ("text", "bytes")
    expected = _FIXED64 if kind == "double" else _BYTES if delimited else _VARINT
    if wire != expected:
        raise Malformed(f"{name}: of another kind")
    if isinstance(kind, dict):
        return _decode(kind, value, depth - 1, count)
    if kind == "text":
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise Malformed(f"{name}: no text") from None
    if kind == "bytes":
        return bytes(value)
    if kind == "sint":
        return value >> 1 if value & 1 == 0 else -(value >> 1) - 1
    return bool(value) if kind == "bool" else value


def _fields(content: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and raw value of each field."""
    return ((number, wire, value) for number, wire, value, _ in _places(content))


def _places(content: memoryview) -> Iterator[tuple[int, int, Any, int]]:
    """The same, and where each field ends."""
    at = 0
    while at < len(content):
        key, at = _read_varint(content, at)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == _VARINT:
            value, at = _read_varint(content, at)
        elif wire == _BYTES:
            length, at = _read_varint(content, at)
            value, at = content[at : at + length], at + length
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
            value, at = content[at : at + length], at + length
            if len(value) == 8:
                value = struct.unpack("<d", value)[0]
        else:
            raise Malformed(f"field {number} is of an unknown kind")
        if at > len(content):
            raise Malformed(f"field {number} is cut off")
        yield number, wire, value, at


def _read_varint(content: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if at >= len(content):
            break
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise Malformed("a number is cut off")
