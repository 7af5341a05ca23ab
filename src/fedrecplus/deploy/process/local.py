"""Server and nodes on this machine, for a try: TLS and keys as on many machines, ratings spread over the nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.process.environment import CA, server_port
from fedrecplus.deploy.process.follow import Show, run_to_the_end
from fedrecplus.deploy.process.homes import NodeHome, ServerHome
from fedrecplus.deploy.process.supervision import Supervised
from fedrecplus.deploy.server import Deployment, begin
from fedrecplus.deploy.wire import catalogue_of


def run_local(
    ratings: Ratings, config: Config, folder: Path, deployment: Deployment, show: Show, say: Callable[[str], None],
    *, poll: float = 0.2, simulated_keys: bool = False, overwrite: bool = False,
) -> None:  # fmt: skip
    """All of a deployment in one call; leaves the run folder, and the nodes' and server's homes beside it in it.

    ``poll`` is how many seconds a node waits between looks for messages. With ``simulated_keys`` the devices' secrets
    come from the seed, as in a simulation, to compare with one; otherwise from the operating system.
    """
    begin(folder, config, deployment, catalogue_of(ratings), {"dataset": ratings.name}, overwrite=overwrite)
    homes = spread(ratings, folder / "nodes", deployment.nodes, config.seed if simulated_keys else None)
    with running_server(folder / "server", say) as server, running_nodes(server, homes, poll, say):
        run_to_the_end(server, folder, show, say)


def spread(ratings: Ratings, folder: Path, nodes: int, seed: int | None) -> list[NodeHome]:
    """A store for each node, persons dealt out in turn; with a seed they have a simulation's numbers and secrets."""
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
def running_nodes(server: ServerHome, homes: list[NodeHome], poll: float, say: Callable[[str], None]) -> Iterator[None]:
    """Nodes that the server admits, until the block ends."""
    with contextlib.ExitStack() as stack:
        for home in homes:
            server.admit(home.make_key())
            command = home.command(f"127.0.0.1:{server.port}", ca=server.certificates / CA, insecure=False)
            environment = home.environment(poll=poll, share_error=True)
            stack.enter_context(Supervised(command, environment, home.path / "node.log", say).kept_alive())
        yield
