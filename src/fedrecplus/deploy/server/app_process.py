"""The process that the server's app is, told from others."""

from __future__ import annotations

from pathlib import Path


def process_began(pid: int) -> int | None:
    """When a process began, in the kernel's ticks: with its number, what tells it from a later one of that number.

    None where there is no such process, or the system doesn't tell.
    """
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
