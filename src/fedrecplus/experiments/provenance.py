"""Where figures come from: what a reader needs to get them again."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


class Stopwatch:
    """Notes when a command began, so that its figures can say how long they took."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._when = datetime.now(UTC)

    def made(self, seed: int) -> dict[str, Any]:
        """Command, version, commit, seed and time, for a JSON file.

        Ours: a figure that can't be traced to a command and a commit is not evidence.
        """
        return {
            "command": command_line(sys.argv),
            "version": version("fedrecplus"),
            "commit": commit(),
            "seed": seed,
            "when": self._when.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._began, 1),
            "cores": len(os.sched_getaffinity(0)),
            "python": platform.python_version(),
        }


def command_line(arguments: list[str]) -> str:
    """The command as one would type it again.

    >>> command_line(["/somewhere/bin/fedrecplus", "report", "my runs"])
    "fedrecplus report 'my runs'"
    """
    return shlex.join(["fedrecplus", *arguments[1:]])


def commit() -> str | None:
    """The commit of the checkout that the package runs from, marked where files differ from it; None outside one."""
    here = Path(__file__).parent
    try:
        known = _git(here, "rev-parse", "--short=12", "HEAD")
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", ":/src")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{known} with changes" if changed else known


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
