"""A deployed run to its result: follow it, and leave its folder; a try on one machine in one call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, change
from fedrecplus.data import Ratings
from fedrecplus.deploy.device import CHANNELS, Policy, Store, save_policy
from fedrecplus.deploy.node import NodeHome, read_public_key
from fedrecplus.deploy.operate.certificates import CA
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import Child, kept_alive, server_port
from fedrecplus.deploy.operate.serving import serving_processes
from fedrecplus.deploy.server import Deployment, StoredRun, begin, export
from fedrecplus.deploy.server.lease import is_held
from fedrecplus.deploy.server.stored_run import FAILED, FINISHED, QUEUED, STOPPED
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.stages import is_secure
from fedrecplus.errors import UserError

_LOOK, _SOON = 0.2, 10.0
"""seconds between looks at a run, and until it is said that nobody works on it"""
Show = Callable[[dict[str, Any], list[dict[str, Any]]], None]
"""takes a run's progress (phase, round, nodes) and its journal so far"""


def run_to_the_end(run: StoredRun, folder: Path, show: Show, say: Callable[[str], None]) -> None:
    """Follow a run, and write its folder when it has ended. Ctrl-C ends the run, too; it can be gone on with."""
    try:
        _follow(run, show, say)
    except KeyboardInterrupt:
        say("stopping the run; go on with --resume")
        run.stop()
        end = time.monotonic() + _SOON
        while (running := run.phase not in (FINISHED, FAILED, STOPPED)) and time.monotonic() < end:
            time.sleep(_LOOK)
        if running:
            say("nobody has stopped it yet: whoever coordinates does so before anything else")
        raise
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            export(run, folder)
    if run.phase == FAILED:
        raise UserError(str(run.progress().get("error", "the run failed")), "then go on with --resume")
    if run.phase == STOPPED:
        raise UserError("somebody stopped the run", "go on with --resume")


def _follow(run: StoredRun, show: Show, say: Callable[[str], None]) -> None:
    """Show a run until it ends."""
    began, told, lines = time.monotonic(), False, list[dict[str, Any]]()
    while True:
        phase = run.phase
        lines += run.lines(after=lines[-1]["round"] if lines else 0)
        show(run.progress(), lines)
        if phase in (FINISHED, FAILED, STOPPED):
            return
        if not told and phase == QUEUED and time.monotonic() - began > _SOON:
            _say_what_it_waits_for(run, say)
            told = True
        time.sleep(_LOOK)


def _say_what_it_waits_for(run: StoredRun, say: Callable[[str], None]) -> None:
    """Why nobody works on a run."""
    first = StoredRun.next_in_line(run.database)
    if not is_held(run.database):
        say("no server coordinates: start one with `fedrecplus server up`")
    elif first is not None and first.number != run.number:
        say(f"run {first.number} is first, and comes to its end before this one, run {run.number}, begins")


def run_local(
    ratings: Ratings, config: Config, folder: Path, deployment: Deployment, show: Show, say: Callable[[str], None],
    *, simulated_keys: bool = False, overwrite: bool = False,
) -> None:  # fmt: skip
    """All of a deployment in one call; leaves the run folder, and the nodes' and server's homes beside it in it.

    With ``simulated_keys`` the devices' secrets come from the seed, as in a simulation, to compare with one; otherwise
    from the operating system.
    """
    if is_secure(config):
        config = change(config, "channel.demonstration", True)
        say("a demonstration: secure sums of however few people, which could be taken apart")
    with contextlib.ExitStack() as processes:
        server = processes.enter_context(running_server(folder / "server"))
        run = begin(
            server.database, folder, config, deployment, ItemCatalogue.of(ratings), {"dataset": ratings.name},
            overwrite=overwrite,
        )  # fmt: skip
        homes = deal_out(ratings, folder / "nodes", deployment.nodes, config.seed if simulated_keys else None)
        for home in homes:
            server.roster.admit(read_public_key(home.make_key()))
        processes.enter_context(kept_alive([node_process(server, home, share_error=True) for home in homes]))
        run_to_the_end(run, folder, show, say)


def node_process(server: ServerHome, home: NodeHome, *, share_error: bool = False) -> Child:
    """A node of a server on this machine."""
    command = home.command(
        f"127.0.0.1:{server.port}", ca=server.certificates / CA, insecure=False, poll=0.5, share_error=share_error
    )
    return Child(command, home.path / "node.log")


def deal_out(ratings: Ratings, folder: Path, nodes: int, seed: int | None) -> list[NodeHome]:
    """A store for each node, persons dealt out in turn; with a seed they have a simulation's numbers and secrets.

    Nodes do whatever is asked: who deals out the ratings of all is nobody to hide them from.
    """
    values, homes = ratings.values, []
    for number in range(nodes):
        home = NodeHome(folder / f"node{number}")
        mine = np.arange(number, ratings.clients, nodes)
        numbers = range(len(mine)) if seed is None else mine.tolist()
        persons = {person: str(ratings.client_ids[client]) for person, client in zip(numbers, mine, strict=True)}
        home.store.unlink(missing_ok=True)
        Store.create(home.store, ratings.scale, seed=seed, persons=persons)
        rows = [
            (person, str(ratings.item_ids[ratings.items[at]]), float(values[at]))
            for person, client in zip(numbers, mine, strict=True)
            for at in range(ratings.indptr[client], ratings.indptr[client + 1])
        ]
        with Store.open(home.store) as store:
            store.rate_many(rows)
            with store.changing():
                save_policy(store, Policy(bare=True, channels=CHANNELS, demonstration=True, any_task=True))
        homes.append(home)
    return homes


@contextlib.contextmanager
def running_server(home: Path, workers: int = 1, address: str = "") -> Iterator[ServerHome]:
    """A server on loopback with TLS, until the block ends."""
    server = ServerHome(home.absolute(), "127.0.0.1", server_port(), address=address)
    server.prepare([])
    with server.listening() as listener, kept_alive(serving_processes(server, listener, workers, home / "server.log")):
        yield server
