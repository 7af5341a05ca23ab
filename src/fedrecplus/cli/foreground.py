"""Commands that stay until somebody stops them."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from fedrecplus.deploy.process import Supervised


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """A service manager's termination signal does what Ctrl-C does."""

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def keep_in_foreground(process: Supervised) -> None:
    """Keep a process alive until Ctrl-C or a termination signal; then it ends with all its helpers."""
    with terminated_like_interrupted():
        try:
            process.keep_alive()
        finally:
            process.end()
