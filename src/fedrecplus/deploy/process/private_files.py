"""Secrets on the disk: files that their owner alone may read, made so from the first byte on, and refused otherwise."""

from __future__ import annotations

import secrets
from pathlib import Path

from fedrecplus.deploy.device import check_private as check_private
from fedrecplus.files import write_private as write_private


def make_secret(path: Path) -> str:
    """The secret in a file; 256 bits from the operating system where there is none yet."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, secrets.token_hex(32).encode())
    check_private(path)
    return path.read_text(encoding="ascii").strip()
