"""Flower's processes: their environment and ports, keeping them alive, and ending them with all that they started.

They send no telemetry, look for no update, and write no file outside the home they are given.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fedrecplus.deploy.light import is_loopback as is_loopback
from fedrecplus.errors import UserError

CA, SERVER, SERVER_KEY = "ca.crt", "server.crt", "server.key"
FLOWER_APP = Path(__file__).with_name("flower_app")
"""what a server sends its nodes: names alone, no code"""
_FIRST_DELAY, _LONGEST_DELAY, _STEADY = 1.0, 30.0, 60.0
_LOOK, _GRACE = 1.0, 5.0


def require_flower() -> None:
    """Raise an error that names the extra, unless Flower is installed: it brings 200 MB no simulation needs."""
    if importlib.util.find_spec("flwr") is None:
        raise UserError("a deployment needs Flower, which isn't installed", "pip install 'fedrecplus[deploy]'")


def flower_environment(home: Path, **more: str) -> dict[str, str]:
    """For a process that keeps all its Flower files under ``home``."""
    (home / "flower").mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        # its own setting for how often a helper looks for work; a second by default
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        **os.environ,
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_HOME": str(home / "flower"),
        # Flower starts its helpers by name: they are beside this interpreter
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def free_port(port: int = 0) -> int:
    """A port of this machine that nobody listens on; OSError where it must be this one and somebody does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


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
    for port in random.sample(others, min(100, len(others))):
        with contextlib.suppress(OSError):  # somebody has it
            return free_port(port)
    return free_port()


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


def end_with_parent(parent: int | None = None) -> None:
    """Watch the parent from now on; when it is gone, end this process and the group that it leads.

    ``parent`` is its number where the child was told: it may be gone already. A parent that is dead but not yet waited
    for still has its number, and is nobody's parent any more, so it is not looked for by number.
    """
    threading.Thread(target=_watch, args=(parent or os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    end, own = (os.killpg, os.getpgrp()) if os.getpgrp() == os.getpid() else (os.kill, os.getpid())
    for how in (signal.SIGTERM, signal.SIGKILL):
        end(own, how)
        time.sleep(_GRACE)
