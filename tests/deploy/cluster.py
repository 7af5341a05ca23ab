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
from fedrecplus.deploy.process import (
    CA,
    NodeHome,
    ServerHome,
    Supervised,
    deal_out,
    run_to_the_end,
)
from fedrecplus.deploy.process.processes import server_port

from fedrecplus.config import Config, change, preset
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.server import Deployment, begin
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.training.model_files import read_tensors
from tests.waiting import GIVE_UP


def exact(name: str = "fedrec+private", rounds: int = 5) -> Config:
    """Settings under which a deployed round equals a simulated one bit for bit."""
    config = preset(name)
    for path, value in {
        "engine": "reference",
        "precision": "float64",
        "model.factors": 4,
        "server.rounds": rounds,
    }.items():
        config = change(config, path, value)
    return config


def before_all(folder: Path) -> str:
    """A path for Python with this folder first: the rest stays, so that nodes import what the test does."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


class Cluster:
    """One server, some nodes, one run."""

    def __init__(
        self, folder: Path, ratings: Ratings, config: Config, nodes: int = 3, catalogue: ItemCatalogue | None = None,
        **deployment: Any,
    ) -> None:  # fmt: skip
        self.folder, self.ratings, self.config = folder / "run", ratings, config
        self.deployment = replace(Deployment(nodes, deadline=GIVE_UP), **deployment)
        catalogue = catalogue or ItemCatalogue.of(ratings)
        begin(self.folder, config, self.deployment, catalogue, {"dataset": ratings.name})
        self.homes = deal_out(ratings, folder / "nodes", nodes, config.seed)
        self.server = ServerHome((folder / "server").absolute(), "127.0.0.1", server_port())
        self.server.prepare([])
        self.journal = Journal(self.folder)
        self._keepers: list[tuple[Supervised, threading.Thread]] = []
        self.superlink: Supervised | None = None
        self.nodes: list[Supervised] = []
        self.node_environment: dict[str, str] = {}
        self._failure: list[BaseException] = []
        self._runner: threading.Thread | None = None

    def __enter__(self) -> Cluster:
        try:
            process = Supervised(self.server.command(), self.server.environment(), self.folder / "superlink.log")
            self.superlink = self.keep(process)
            self.server.wait_until_up()
            for home in self.homes:
                self.server.admit(home.make_key())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process, _thread in reversed(self._keepers):
            process.end(2.0)
        for _process, thread in self._keepers:
            thread.join(20)
        self.kill_app()

    def keep(self, process: Supervised) -> Supervised:
        thread = threading.Thread(target=process.keep_alive, daemon=True)
        thread.start()
        self._keepers.append((process, thread))
        return process

    def start_node(self, home: NodeHome) -> Supervised:
        address, ca = f"127.0.0.1:{self.server.port}", self.server.certificates / CA
        command = home.command(address, ca=ca, insecure=False, poll=0.3)
        environment = {**os.environ, **self.node_environment}
        process = self.keep(Supervised(command, environment, home.path / "node.log"))
        self.nodes.append(process)
        return process

    def start_nodes(self) -> None:
        for home in self.homes:
            self.start_node(home)

    def run(self) -> None:
        """All rounds, in the foreground."""
        run_to_the_end(self.server, self.folder, lambda *_: None, lambda _: None)

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

    def kill_node(self, number: int) -> None:
        """kill -9 of a node; its supervisor starts it again."""
        kill_group(self.nodes[number])

    def take_away(self, number: int) -> None:
        """kill -9 of a node that nobody starts again: one that comes back at once answers as if nothing had been."""
        self.nodes[number]._ending.set()
        kill_group(self.nodes[number])

    def bring_back(self, number: int) -> None:
        """Start a node again that was taken away."""
        self.nodes[number] = self.start_node(self.homes[number])
        self.nodes.pop()

    def kill_server(self) -> None:
        """kill -9 of the SuperLink and the server's app."""
        self.kill_superlink()
        self.kill_app()

    def kill_superlink(self) -> None:
        """kill -9 of the SuperLink; the server's app, which has a group of its own, may live on for a while."""
        assert self.superlink is not None
        kill_group(self.superlink)

    def kill_app(self) -> None:
        progress = self.journal.progress()
        if progress.get("phase") in ("starting", "round", "waiting"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(progress["pid"]), signal.SIGKILL)

    @property
    def V(self) -> np.ndarray[Any, Any]:
        return read_tensors(self.folder / "model.safetensors")[0]["V"]


def kill_group(process: Supervised) -> None:
    """kill -9 of a process with all that it started."""
    assert process.process is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.process.pid, signal.SIGKILL)
