"""The file of identities: a public key per line, in hexadecimal, and a name behind it if one likes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fedrecplus.errors import UserError

_BYTES = 32


def identity_number(key: bytes) -> int:
    """What the owner of a key is called in sums: a number that follows from the key, so that nobody deals it out."""
    return int.from_bytes(hashlib.sha256(b"fedrecplus identity\0" + key).digest()[:8], "big") >> 2


def read_identities(path: Path) -> list[bytes]:
    """The keys in a file; lines that begin with # are none."""
    remedy = "write a line for each node: what `fedrecplus node identity` says there"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or 'no text'}", remedy) from None
    keys = []
    for number, line in enumerate(lines, 1):
        word = line.split()[0] if line.split() else "#"
        if word.startswith("#"):
            continue
        try:
            key = bytes.fromhex(word)
        except ValueError:
            key = b""
        if len(key) != _BYTES:
            raise UserError(f"{path}, line {number}: {word[:20]!r} is no identity", remedy)
        keys.append(key)
    if len({identity_number(key) for key in keys}) != len(keys):
        raise UserError(f"{path}: an identity stands there twice", "keep one of the lines")
    if not keys:
        raise UserError(f"{path} has no identity", remedy)
    return keys
