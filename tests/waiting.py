"""How long tests wait for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable

GIVE_UP = 600.0
"""seconds after which a test calls it a failure; nothing that works depends on it, however busy the machine is"""


def wait_until(state: Callable[[], object], seconds: float = GIVE_UP) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not state():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
