"""A process that is kept alive until somebody stops the command."""

from __future__ import annotations

import signal
from types import FrameType

from fedrecplus.deploy.supervising import Supervised


def keep_in_foreground(process: Supervised) -> None:
    """Until Ctrl-C or a termination signal; then it ends with all its helpers."""

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        process.keep_alive()
    finally:
        signal.signal(signal.SIGTERM, before)
        process.end()
