"""Files that nobody but their owner may read or write: ratings, secrets and keys."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fedrecplus.errors import UserError


def check_private(*paths: Path) -> None:
    """Refuse files that other users may read or write. Windows has no such modes, so nothing is refused there."""
    for path in paths if os.name == "posix" else ():
        if path.exists() and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            raise UserError(
                f"{path} has mode {mode:o}: other users may read or change it",
                f"look whether somebody did, then chmod 600 {path}; a key or a secret is better made anew",
            )
