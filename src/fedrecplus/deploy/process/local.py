"""Server and nodes on this machine, for a try: TLS and keys as on many machines, ratings spread over the nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.process.environment import CA, server_port
from fedrecplus.deploy.process.follow import Show, run_to_the_end
from fedrecplus.deploy.process.node import NodeHome
from fedrecplus.deploy.process.superlink import ServerHome
from fedrecplus.deploy.process.supervision import Supervised
from fedrecplus.deploy.server import Deployment, begin, catalogue_of, new_model
from fedrecplus.errors import UserError


@dataclass(frozen=True)
class LocalOptions:
    """How to try it."""

    nodes: int = 3
    poll: float = 0.2
    """seconds between a node's looks for messages"""
    simulated_keys: bool = False
    """secrets from the seed, as in a simulation, to compare with one; otherwise from the operating system"""
    deadline: float = 120.0
    quorum: float = 1.0


def run_local(
    ratings: Ratings,
    config: Config,
    folder: Path,
    options: LocalOptions,
    show: Show,
    say: Callable[[str], None],
    *,
    overwrite: bool = False,
) -> None:
    """All of a deployment in one call; leaves the run folder, and the nodes' and server's homes beside it in it."""
    if options.nodes < 1:
        raise UserError(f"{options.nodes} nodes are none", "ask for at least one")
    deployment = Deployment(new_model(), options.nodes, options.quorum, options.deadline)
    begin(folder, config, deployment, catalogue_of(ratings), {"dataset": ratings.name}, overwrite=overwrite)
    homes = spread(ratings, config, folder / "nodes", options)
    with running_server(folder / "server", say) as server, running_nodes(server, homes, options, say):
        run_to_the_end(server, folder, show, say)


def spread(ratings: Ratings, config: Config, folder: Path, options: LocalOptions) -> list[NodeHome]:
    """A store for each node, persons dealt out in turn."""
    values = ratings.values
    homes = []
    for number in range(options.nodes):
        home = NodeHome(folder / f"node{number}")
        mine = np.arange(number, ratings.clients, options.nodes)
        seed = config.seed if options.simulated_keys else None
        names = {int(client): str(ratings.client_ids[client]) for client in mine}
        numbered = names if options.simulated_keys else dict(enumerate(names.values()))
        home.store.unlink(missing_ok=True)
        Store.create(home.store, ratings.scale, seed=seed, persons=numbered)
        rows = [
            (person, str(ratings.item_ids[ratings.items[at]]), float(values[at]))
            for person, client in zip(numbered, mine, strict=True)
            for at in range(ratings.indptr[client], ratings.indptr[client + 1])
        ]
        with Store.open(home.store) as store:
            store.rate_many(rows)
        homes.append(home)
    return homes


@contextlib.contextmanager
def running_server(home: Path, say: Callable[[str], None]) -> Iterator[ServerHome]:
    """A SuperLink on loopback with TLS, until the block ends."""
    server = ServerHome(home.absolute(), "127.0.0.1", server_port())
    server.prepare([])
    with Supervised(server.command(), server.environment(), home / "superlink.log", say).kept_alive():
        server.wait_until_up()
        yield server


@contextlib.contextmanager
def running_nodes(
    server: ServerHome, homes: list[NodeHome], options: LocalOptions, say: Callable[[str], None]
) -> Iterator[None]:
    """Nodes that the server admits, until the block ends."""
    with contextlib.ExitStack() as stack:
        for home in homes:
            server.admit(home.make_key())
            command = home.command(f"127.0.0.1:{server.port}", ca=server.certificates / CA, insecure=False)
            environment = home.environment(poll=options.poll, share_error=True)
            stack.enter_context(Supervised(command, environment, home.path / "node.log", say).kept_alive())
        yield
