"""Where figures come from: what a reader needs to get them again."""

from __future__ import annotations

import functools
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrecplus import __version__
from fedrecplus.workers import core_count


class Stopwatch:
    """Notes when something began and under which commit, so that its figures can say so and how long they took."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._when = datetime.now(UTC)
        self._commit = commit()

    def began(self, seed: int) -> dict[str, Any]:
        """Command, version, commit, seed and time, for a JSON file: all that is known before the end.

        Ours: a figure that can't be traced to a command and a commit is not evidence.
        """
        return {
            "command": command_line(sys.argv),
            "version": __version__,
            "commit": self._commit,
            "seed": seed,
            "when": self._when.isoformat(timespec="seconds"),
            "cores": core_count(),
            "python": platform.python_version(),
        }

    def made(self, seed: int) -> dict[str, Any]:
        """The same at the end, with how long it took."""
        return {**self.began(seed), "seconds": round(time.perf_counter() - self._began, 1)}


def command_line(arguments: Sequence[str]) -> str:
    """The command as one would type it again; a program of somebody's own is named as it was called.

    >>> command_line(["/somewhere/bin/fedrecplus", "report", "my runs"])
    "fedrecplus report 'my runs'"
    >>> command_line(["study.py", "--quick"])
    'python study.py --quick'
    """
    program, *rest = arguments or [""]
    if Path(program).name == "fedrecplus" or Path(program).parts[-2:] == ("fedrecplus", "__main__.py"):
        return shlex.join(["fedrecplus", *rest])
    return shlex.join(["python", *([program] if program else []), *rest])


@functools.cache
def commit() -> str | None:
    """The commit of the checkout that the package runs from, marked where files differ from it; None outside one.

    Looked up once: what is committed later is not what runs here.
    """
    here = Path(__file__)
    try:
        _git(here.parent, "ls-files", "--error-unmatch", here.name)  # not the commit of somebody else's checkout
        known = _git(here.parent, "rev-parse", "--short=12", "HEAD")
        changed = _git(here.parent, "status", "--porcelain", ":/src")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{known} with changes" if changed else known


def _git(folder: Path, *arguments: str) -> str:
    asking = ["git", "--no-optional-locks", "-C", str(folder), *arguments]  # a lock would outlive us if we are killed
    done = subprocess.run(asking, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
