"""One server app to a run folder: a killed SuperLink can leave its app behind for a while, and a new one must wait."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from fedrecplus.errors import UserError

_PATIENCE = 120.0


def is_served(folder: Path) -> bool:
    """Whether a server app works in the folder at this moment."""
    try:
        with alone_in(folder, patience=0.0):
            return False
    except UserError:
        return True


@contextlib.contextmanager
def alone_in(folder: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Hold the folder's lock; the operating system frees it when its holder dies, however that happens."""
    with (folder / ".lock").open("w") as file:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise UserError(f"another server app works in {folder}", "stop it first") from None
                time.sleep(0.2)
        yield
