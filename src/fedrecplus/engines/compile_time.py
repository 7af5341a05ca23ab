"""Time that went into compiling kernels: it is paid once on a machine, so no round's seconds contain it."""

from __future__ import annotations

import sys
import time
from typing import Any

_COMPILING = "numba:compile"
_clock: Any = None


def compile_seconds() -> float:
    """Seconds that this process has spent on compiling since this was first asked.

    Numba tells when it begins and ends to compile; a kernel that compiles another one counts once. Where nothing has
    imported numba, nothing was compiled.
    """
    global _clock
    if "numba" not in sys.modules:
        return 0.0
    if _clock is None:
        from numba.core import event as numba_event  # here: an engine without kernels must not wait for numba

        event: Any = numba_event

        _clock = _listener(event)
        event.register(_COMPILING, _clock)
    return float(_clock.seconds)


def _listener(event: Any) -> Any:
    """What adds up the times between the outermost starts and ends."""

    class CompileClock(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.seconds, self._began, self._depth = 0.0, 0.0, 0

        def on_start(self, _: Any) -> None:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

        def on_end(self, _: Any) -> None:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began

    return CompileClock()
