"""A server's processes on one machine: workers that share a port, and a coordinator. What ends is started again.

A service manager starts and stops the whole; containers may run `server work` and `server coordinate` by themselves.
"""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

log = logging.getLogger("fedrecplus")
_AGAIN, _STEADY, _LONGEST = 0.5, 30.0, 15.0
"""seconds before a process is started again, more for each time it ends within the second number"""


@dataclass
class Child:
    """One process and its successors."""

    command: Sequence[str]
    log: Path | None = None
    """where its output goes; None: where ours goes"""
    descriptors: tuple[int, ...] = ()
    environment: dict[str, str] | None = None
    """None: ours"""
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)
    _starting: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Start it once. It ends with us: see ``end_with_parent``, which reads its standard input."""
        with contextlib.ExitStack() as stack:
            out: IO[bytes] | None = stack.enter_context(self.log.open("ab")) if self.log else None
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT if out else None,
                pass_fds=self.descriptors, env=self.environment, start_new_session=True,
            )  # fmt: skip

    def keep_alive(self) -> None:
        """Start it again whenever it ends, until ``end`` is called."""
        delay = _AGAIN
        while True:
            began = time.monotonic()
            with self._starting:  # or it would start once more while somebody ends the process before it
                if self._ending.is_set():
                    return
                self.start()
            self._wait()
            delay = _AGAIN if time.monotonic() - began > _STEADY else min(2 * delay, _LONGEST)
            self.restarts += 1
            if not self._ending.is_set() and self.process is not None:
                code, name = self.process.returncode, " ".join(self.command[2:4])
                log.warning("%s ended with code %s; starting it again in %s s", name, code, delay)
            self._ending.wait(delay)

    def ask_to_end(self) -> None:
        """Tell it to end, and start it no more."""
        with self._starting:
            self._ending.set()
        if self.process is not None:
            self.process.terminate()

    def end(self, patience: float = 5.0) -> None:
        """End it for good, gently first."""
        self.ask_to_end()
        if self.process is not None:
            try:
                self._wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self._wait()

    def _wait(self, patience: float | None = None) -> None:
        assert self.process is not None
        self.process.wait(patience)
        if self.process.stdin is not None:
            self.process.stdin.close()


@contextlib.contextmanager
def kept_alive(children: Sequence[Child]) -> Iterator[Sequence[Child]]:
    """Keep processes alive in the background, until the block ends."""
    keepers = [threading.Thread(target=child.keep_alive, daemon=True) for child in children]
    for keeper in keepers:
        keeper.start()
    try:
        yield children
    finally:
        for child in children:
            child.ask_to_end()
        for child in children:
            child.end()


def python_module(name: str, *arguments: str) -> list[str]:
    """What starts a module of this package with this interpreter."""
    return [sys.executable, "-m", name, *arguments]


def server_port() -> int:
    """A free port for a server, which may be down for a while and come back to it.

    It is none of those that the system deals out to whoever asks for any: now and then one of its own nodes would get
    it while the server is down.
    """
    try:
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        first, last = 32_768, 2**16 - 1
    others = [port for port in range(10_000, 2**16) if not first <= port <= last]
    for port in [*random.sample(others, min(100, len(others))), 0]:
        with contextlib.suppress(OSError), socket.socket() as probe:  # somebody has it
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("no port is free")
