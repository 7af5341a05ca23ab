"""Keeping a process alive, ending it with all that it started, and ending when whoever started it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_FIRST_DELAY, _LONGEST_DELAY, _STEADY = 1.0, 30.0, 60.0
_LOOK, _GRACE = 1.0, 5.0


@dataclass
class Supervised:
    """One process and its successors. Each runs in a group of its own, so that its helpers end with it."""

    command: list[str]
    environment: dict[str, str]
    log: Path | None
    """where its output goes; None: where ours goes"""
    say: Callable[[str], None] = lambda _: None
    hint: str = ""
    """what to look at when it ends again and again"""
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Start it once."""
        with self.log.open("ab") if self.log else contextlib.nullcontext() as out:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT if out else None, start_new_session=True,
            )  # fmt: skip

    def keep_alive(self) -> None:
        """Start it again whenever it ends, with growing pauses, until ``end`` is called."""
        delay = _FIRST_DELAY
        while not self._ending.is_set():
            began = time.monotonic()
            self.start()
            assert self.process is not None
            code = self.process.wait()
            self._end_group(signal.SIGKILL)  # helpers that outlived it
            if self._ending.is_set():
                return
            delay = _FIRST_DELAY if time.monotonic() - began > _STEADY else min(1.6 * delay, _LONGEST_DELAY)
            self.restarts += 1
            self.say(f"the process ended with {code}; starting it again in {delay:.0f} s")
            if self.hint and self.restarts == 1:
                self.say(self.hint)
            self._ending.wait(delay)

    def end(self, patience: float = 5.0) -> None:
        """End it and its helpers, gently first."""
        self._ending.set()
        if self.process is None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            self._end_group(how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)

    def _end_group(self, how: signal.Signals) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, how)

    @contextlib.contextmanager
    def kept_alive(self) -> Iterator[Supervised]:
        """Keep it alive in the background, until the block ends."""
        keeper = threading.Thread(target=self.keep_alive, daemon=True)
        keeper.start()
        try:
            yield self
        finally:
            self.end()
            keeper.join(15)


def end_with_parent() -> None:
    """Watch the parent from now on; when it is gone, end this process and the group that it leads."""
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    end, own = (os.killpg, os.getpgrp()) if os.getpgrp() == os.getpid() else (os.kill, os.getpid())
    for how in (signal.SIGTERM, signal.SIGKILL):
        end(own, how)
        time.sleep(_GRACE)
