"""Server and nodes as real processes on loopback, to be killed and looked into."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.node import NodeHome, read_public_key
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import Child, server_port
from fedrecplus.deploy.operate.runs import deal_out, node_process, run_to_the_end
from fedrecplus.deploy.operate.serving import serving_processes
from fedrecplus.deploy.server import Deployment, StoredRun, begin
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.training.model_files import read_tensors
from tests.deploy.in_process import small_config
from tests.waiting import GIVE_UP, wait_until

LEASE = 3.0
"""seconds without a coordinator after a kill"""


def exact(name: str = "fedrec+private", rounds: int = 5) -> Config:
    """Settings under which a deployed round equals a simulated one bit for bit."""
    return small_config(name, rounds, engine="reference", precision="float64")


def before_all(folder: Path) -> str:
    """A path for Python with this folder first: the rest stays, so that nodes import what the test does."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


class Cluster:
    """One server, some nodes, one run."""

    def __init__(
        self, folder: Path, ratings: Ratings, config: Config, nodes: int = 3, catalogue: ItemCatalogue | None = None,
        workers: int = 1, address: str = "", wanted: int = 0, **deployment: Any,
    ) -> None:  # fmt: skip
        """A round waits for as many nodes, or for so many as are ``wanted``: others may come besides."""
        self.folder, self.ratings, self.config = folder / "run", ratings, config
        self.server = ServerHome((folder / "server").absolute(), "127.0.0.1", server_port(), address=address)
        self.server.prepare([])
        self.homes = deal_out(ratings, folder / "nodes", nodes, config.seed)
        for home in self.homes:
            self.server.roster.admit(read_public_key(home.make_key()), home.path.name)
        terms = replace(Deployment(wanted or nodes, deadline=GIVE_UP), **deployment)
        items = catalogue or ItemCatalogue.of(ratings)
        self.journal: StoredRun = begin(self.server.database, self.folder, config, terms, items, {"dataset": "small"})
        self.listener = self.server.listening()
        self.coordinator, *self.workers = serving_processes(
            self.server, self.listener, workers, folder / "server.log", LEASE
        )
        self.nodes: list[Child] = []
        self.node_environment: dict[str, str] = {}
        self._kept: list[Child] = []
        self._failure: list[BaseException] = []
        self._runner: threading.Thread | None = None

    def __enter__(self) -> Cluster:
        for child in (self.coordinator, *self.workers):
            self.keep(child)
        try:
            wait_until(self.server.is_up)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._kept:
            child.ask_to_end()
        for child in self._kept:
            child.end(2.0)
        self.listener.close()
        self.server.database.close()

    def keep(self, child: Child) -> Child:
        threading.Thread(target=child.keep_alive, daemon=True).start()
        self._kept.append(child)
        return child

    def start_node(self, home: NodeHome) -> Child:
        node = node_process(self.server, home)
        node.environment = {**os.environ, **self.node_environment}
        self.nodes.append(self.keep(node))
        return node

    def start_nodes(self) -> None:
        for home in self.homes:
            self.start_node(home)

    def run(self) -> None:
        """All rounds, in the foreground."""
        run_to_the_end(self.journal, self.folder, lambda *_: None, lambda _: None)

    def start_run(self) -> None:
        """All rounds, in the background."""

        def work() -> None:
            try:
                self.run()
            except BaseException as failure:
                self._failure.append(failure)

        self._runner = threading.Thread(target=work, daemon=True)
        self._runner.start()

    def finish(self, seconds: float = GIVE_UP) -> None:
        assert self._runner is not None
        self._runner.join(seconds)
        if self._failure:
            raise self._failure[0]
        assert not self._runner.is_alive(), f"not finished in {seconds} s: {self.journal.progress()}"

    def wait_for(self, what: Callable[[dict[str, Any]], bool], seconds: float = GIVE_UP) -> dict[str, Any]:
        """Wait until the run's progress is so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._failure:
                raise self._failure[0]
            progress = self.journal.progress()
            if progress and what(progress):
                return progress
            time.sleep(0.02)
        raise AssertionError(f"waited {seconds} s in vain: {self.journal.progress()}")

    def wait_for_nodes(self) -> None:
        """Wait until every node asks for work."""
        wait_until(lambda: all(node["status"] == "online" for node in self.server.roster.everybody()))

    def take_away_at(self, number: int, what: Callable[[dict[str, Any]], bool]) -> None:
        """Take a node away when the run's progress is so. It moves by ticks until then: no stage ends without it."""
        child = self.nodes[number]
        end = time.monotonic() + GIVE_UP
        while not what(self.journal.progress() or {}):
            assert time.monotonic() < end, f"waited in vain: {self.journal.progress()}"
            assert child.process is not None
            child.process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            child.process.send_signal(signal.SIGSTOP)
            time.sleep(0.03)  # what it had sent arrives
        self.take_away(number)

    def kill_node(self, number: int) -> None:
        """kill -9 of a node, which is started again."""
        kill(self.nodes[number])

    def take_away(self, number: int) -> None:
        """kill -9 of a node that nobody starts again: one that comes back at once answers as if nothing had been."""
        self.nodes[number]._ending.set()
        kill(self.nodes[number])

    def bring_back(self, number: int) -> None:
        """Start a node again that was taken away."""
        self.nodes[number] = self.start_node(self.homes[number])
        self.nodes.pop()

    def kill_server(self) -> None:
        """kill -9 of the coordinator and all workers, which are started again."""
        for child in (self.coordinator, *self.workers):
            kill(child)

    @property
    def V(self) -> np.ndarray[Any, Any]:
        return read_tensors(self.folder / "model.safetensors")[0]["V"]


def kill(child: Child) -> None:
    assert child.process is not None
    with contextlib.suppress(ProcessLookupError):
        child.process.kill()
