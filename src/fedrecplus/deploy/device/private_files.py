"""Files that nobody but their owner may read or write: ratings, secrets and keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fedrecplus.errors import UserError


def check_private(path: Path) -> None:
    """Refuse a file that others may read or change: whoever could, may have done so."""
    if os.name != "posix" or not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        problem = f"{path} has mode {mode:o}: others on this machine may read or change it"
        raise UserError(problem, f"look whether somebody did, then chmod 600 {path}")
