"""What left a device, line by line, and what it cost."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedrecplus.deploy.wire.packet import Packet


@dataclass(frozen=True)
class SentLine:
    """What left, and what it cost this device: the columns of ``sent``."""

    at: str
    model: str
    round: int
    persons: int
    rows: int
    bytes: int
    digest: str
    again: int
    seconds: float
    memory: int
    received: int
    stage: str

    @classmethod
    def of(
        cls, model: str, number: int, persons: int, rows: int, reply: Packet, started: float, received: int,
        *, again: bool = False, stage: str = "upload",
    ) -> SentLine:  # fmt: skip
        """A reply's line."""
        size, seconds = (persons, rows, reply.size, reply.digest), time.perf_counter() - started
        return cls(now(), model, number, *size, int(again), seconds, most_memory(), received, stage)


def now() -> str:
    """The time, for logs."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def most_memory() -> int:
    """Most bytes that this process had in memory at a time; 0 where the system doesn't say, as on Windows."""
    try:
        import resource
    except ImportError:
        return 0
    most = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most if sys.platform == "darwin" else 1024 * most  # macOS counts bytes, others kilobytes
