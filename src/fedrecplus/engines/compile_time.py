"""Time that went into compiling kernels: it is paid once on a machine, so no round's seconds contain it."""

from __future__ import annotations

import sys
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
        _clock = event.TimingListener()
        event.register(_COMPILING, _clock)
    return float(_clock.duration) if _clock.done else 0.0
