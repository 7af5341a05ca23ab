"""What the SuperLink counts while it runs, for the metrics page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Counters:
    """Since the process began."""

    began: float = field(default_factory=time.time)
    idle_polls: int = 0
    activations: int = 0
    enrolled: int = 0
    message_bytes: Callable[[], int] = int
    """of messages in flight"""
    requests: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def refuse(self, why: str) -> None:
        """Count a refusal by its reason."""
        self.refused[why] += 1


COUNTERS = Counters()
