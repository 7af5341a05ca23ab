"""A process that ends when the one that started it is gone, however that went: nobody is left to look after it."""

from __future__ import annotations

import os
import signal
import threading
import time

_LOOK, _GRACE = 1.0, 5.0


def end_with_parent() -> None:
    """Watch the parent from now on; when it is gone, end this process and the group that it leads."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    group = os.getpgrp() == os.getpid()
    for how in (signal.SIGTERM, signal.SIGKILL):
        if group:
            os.killpg(os.getpgrp(), how)
        else:
            os.kill(os.getpid(), how)
        time.sleep(_GRACE)
