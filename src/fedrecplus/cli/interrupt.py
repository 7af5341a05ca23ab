"""Ctrl-C, gently: the first one asks the training to stop after its round, the second stops at once."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType


class Interrupted(Exception):
    """The user stopped a command; the message says how to go on."""


@contextlib.contextmanager
def stop_on_interrupt(remedy: str) -> Iterator[Callable[[], bool]]:
    """Whether the user wants to stop, as a function to ask between rounds; ``remedy`` says how to go on."""
    wanted = False

    def note(_: int, __: FrameType | None) -> None:
        nonlocal wanted
        if wanted:
            raise KeyboardInterrupt
        wanted = True
        print("\nstopping after this round (again: at once) ...", file=sys.stderr)

    before = {name: signal.signal(name, note) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: wanted
    except KeyboardInterrupt:
        raise Interrupted(remedy) from None
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


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
