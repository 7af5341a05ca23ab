"""A deployed run to its result: submit it, follow it, submit it again when the server was killed; a try in one call."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, change
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import CHANNELS, Policy, Store, save_policy
from fedrecplus.deploy.light import NodeHome
from fedrecplus.deploy.process.homes import ServerHome
from fedrecplus.deploy.process.processes import CA, Supervised, require_flower, server_port
from fedrecplus.deploy.server import LOG, Deployment, Journal, begin, is_served, process_began
from fedrecplus.deploy.wire import ItemCatalogue, is_secure
from fedrecplus.errors import UserError
from fedrecplus.training.run_folder import RunFolder

_LOOK, _LOOK_FOR_SERVER, _MOST_IN_VAIN = 0.3, 5.0, 20
"""seconds between looks at the run, and at the server while its app hasn't begun; rounds begun in vain"""
Show = Callable[[dict[str, Any], list[dict[str, Any]]], None]
"""takes a run's progress (phase, round, nodes) and its journal so far"""


def run_to_the_end(server: ServerHome, folder: Path, show: Show, say: Callable[[str], None]) -> None:
    """Submit, follow, and go on from the last checkpoint whenever the server or its app was killed.

    An app that works in the folder already, because only its follower was gone, is followed. Ctrl-C ends the app, too.
    """
    journal, in_vain, first = Journal(folder), 0, True
    run: int | None = None
    try:
        while not RunFolder(folder).finished:
            if in_vain == _MOST_IN_VAIN:
                remedy = f"look into {folder / LOG}, then use --resume"
                raise UserError(f"the server's app died {in_vain} times in one round", remedy)
            server.wait_until_up(600.0)
            before = len(journal.lines())
            try:
                run = None
                # an app that a killed SuperLink left behind holds the folder for a moment, too, and ends with it
                if not is_served(folder):
                    note_keys(server, folder)
                    run = server.submit(folder)
            except UserError:
                if server.is_up():
                    raise
                continue  # killed just now
            if run is None:
                say("the server's app is at work; following it")
            elif not first:
                say("the server was gone; going on from the last round")
            _follow(server, folder, run, show)
            in_vain, first = 0 if len(journal.lines()) > before else in_vain + 1, False
    except KeyboardInterrupt:
        say("stopping the server's app; go on with --resume")
        _end_app(folder)  # at once: Flower's own way takes as long as a round or two
        if run is not None:
            with contextlib.suppress(UserError):  # a server that is gone has ended it already
                server.stop(run)
        _end_app(folder)  # one that was only about to start
        raise


def note_keys(server: ServerHome, folder: Path) -> None:
    """Note whether nodes are known by their keys: as the server is now, whatever it was in earlier rounds."""
    replace(Deployment.read(folder), keyed=not server.insecure).write(folder)


def _follow(server: ServerHome, folder: Path, run: int | None, show: Show) -> None:
    """Show a run until it ends well, fails for a reason, or is gone. ``run`` is Flower's id where we submitted it.

    Whether it is gone is asked of processes, never of a clock: on a busy machine an app may say nothing for minutes.
    It holds the folder's lock as long as it lives.
    """
    journal, submitted = Journal(folder), time.time()
    looked = time.monotonic()
    while not RunFolder(folder).finished:
        progress = journal.progress()
        fresh = progress.get("at", 0.0) > submitted
        show(progress if fresh else {}, journal.lines())
        if fresh and progress.get("phase") == "failed":
            raise UserError(str(progress.get("error", "the server's app failed")), "then go on with --resume")
        if not is_served(folder):
            if fresh or run is None:
                time.sleep(_LOOK)  # it may have ended well in this moment
                return
            if time.monotonic() - looked > _LOOK_FOR_SERVER:  # it hasn't begun, or not said so yet
                looked = time.monotonic()
                if _is_over(server, run):
                    return
        time.sleep(_LOOK)
    show(journal.progress(), journal.lines())


def _end_app(folder: Path) -> None:
    """End the app that works in a folder; each round that it closed is on the disk."""
    progress = Journal(folder).progress()
    pid, began = progress.get("pid"), progress.get("began")
    if pid is not None and is_served(folder) and process_began(int(pid)) == began:  # a number may be somebody else's
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _is_over(server: ServerHome, run: int) -> bool:
    """Whether a run that nobody works on is gone: Flower says that it has ended, or its server has no process."""
    try:
        return server.run_status(run).startswith("finished")
    except UserError:  # it is gone, or slow to answer
        return not _listens(server)


def _listens(server: ServerHome) -> bool:
    """Whether some process has the server's port: the system answers for it, however busy it is."""
    try:
        host = "127.0.0.1" if server.host in ("0.0.0.0", "::", "localhost") else server.host
        with socket.create_connection((host, server.port), timeout=_LOOK_FOR_SERVER):
            return True
    except ConnectionRefusedError:
        return False
    except OSError:
        return True


def run_local(
    ratings: Ratings, config: Config, folder: Path, deployment: Deployment, show: Show, say: Callable[[str], None],
    *, poll: float = 0.2, simulated_keys: bool = False, overwrite: bool = False,
) -> None:  # fmt: skip
    """All of a deployment in one call; leaves the run folder, and the nodes' and server's homes beside it in it.

    ``poll`` is how many seconds a node waits between looks for messages. With ``simulated_keys`` the devices' secrets
    come from the seed, as in a simulation, to compare with one; otherwise from the operating system.
    """
    require_flower()
    if is_secure(config):
        config = change(config, "channel.demonstration", True)
        say("a demonstration: secure sums of however few people, which could be taken apart")
    begin(folder, config, deployment, ItemCatalogue.of(ratings), {"dataset": ratings.name}, overwrite=overwrite)
    homes = deal_out(ratings, folder / "nodes", deployment.nodes, config.seed if simulated_keys else None)
    with contextlib.ExitStack() as processes:
        server = processes.enter_context(running_server(folder / "server", say))
        for home in homes:
            server.admit(home.make_key())
            command = home.command(
                f"127.0.0.1:{server.port}", ca=server.certificates / CA, insecure=False, poll=poll, share_error=True
            )
            processes.enter_context(Supervised(command, dict(os.environ), home.path / "node.log", say).kept_alive())
        run_to_the_end(server, folder, show, say)


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
                save_policy(store, Policy(bare=True, channels=CHANNELS, demonstration=True))
        homes.append(home)
    return homes


@contextlib.contextmanager
def running_server(home: Path, say: Callable[[str], None]) -> Iterator[ServerHome]:
    """A SuperLink on loopback with TLS, until the block ends."""
    server = ServerHome(home.absolute(), "127.0.0.1", server_port())
    server.prepare([])
    with (
        server.only_one(),
        Supervised(server.command(), server.environment(), home / "superlink.log", say).kept_alive(),
    ):
        server.wait_until_up()
        yield server
