"""A service that runs: as the command in a process of its own, or in a thread with other limits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

import fedrecplus
from fedrecplus.web.service import ModelSource, ServiceOptions, listen, server_of
from tests.waiting import GIVE_UP


@dataclass
class Service:
    """One that was started."""

    address: str
    process: subprocess.Popen[str]
    errors: Path

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.address, timeout=GIVE_UP, trust_env=False, verify=False)

    def stop(self) -> tuple[int, str]:
        """End it as a service manager does; its exit code and all it logged."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(GIVE_UP)
        return code, self.errors.read_text()


@contextlib.contextmanager
def command(place: Path, errors: Path, *options: str) -> Iterator[Service]:
    """``fedrecplus serve`` on a port of its own."""
    source = str(Path(fedrecplus.__file__).parents[1])
    words = [sys.executable, "-m", "fedrecplus", "serve", str(place), "--port", "0", "--poll", "0.05", *options]
    with errors.open("w") as log:
        environment = {**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("http://"), errors.read_text()
    try:
        yield Service(line.split()[0], process, errors)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(GIVE_UP)
        process.stdout.close()


@contextlib.contextmanager
def in_thread(place: Path, options: ServiceOptions, *, behind_proxy: bool = False) -> Iterator[tuple[str, int]]:
    """Host and port of a service in this process."""
    opened = listen("127.0.0.1", 0)
    server = server_of(ModelSource(place), options, behind_proxy=behind_proxy)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    try:
        yield "127.0.0.1", opened.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(GIVE_UP)
        opened.close()
