"""Secrets on the disk: files that their owner alone may read, made so from the first byte on, and refused otherwise."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from fedrecplus.deploy.device import check_private as check_private
from fedrecplus.errors import UserError


def make_secret(path: Path) -> str:
    """The secret in a file; 256 bits from the operating system where there is none yet."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, secrets.token_hex(32).encode())
    check_private(path)
    return path.read_text(encoding="ascii").strip()


def write_private(path: Path, content: bytes) -> None:
    """A whole file or none, of mode 600."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)
        # a new file of ours: who else may write to the folder could have put one there to read along
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UserError(f"{path}: {error.strerror or error}", "choose a place that can be written to") from None
