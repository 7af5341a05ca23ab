"""kill -9 of nodes and servers, and a full disk: the run goes on, and the model is what the uploads make it."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import Child, python_module, server_port
from tests.deploy.cluster import Cluster, exact, kill
from tests.deploy.replay import replayed, simulated
from tests.small_data import small_ratings
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ROUNDS = 12
DEADLINE = 90.0
"""what a message costs that a killed node had taken; without kills of nodes nothing depends on it"""


def no_rating_is_lost(cluster: Cluster, ratings: Ratings) -> None:
    stored = 0
    for home in cluster.homes:
        with Store.open(home.store) as store:
            stored += sum(len(of_person) for of_person in store.ratings().values())
            assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert stored == len(ratings)


def test_a_node_killed_in_a_round_comes_back_and_keeps_its_data(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=ROUNDS)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        cluster.kill_node(0)
        cluster.finish()
        assert cluster.nodes[0].restarts >= 1
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [*range(1, ROUNDS + 1)]
    assert len(lines[-1]["nodes"]) == 3, "the killed node is back"
    assert sum(len(line["nodes"]) == 3 for line in lines) >= ROUNDS - 1
    assert max(line["seconds"] for line in lines) < DEADLINE, "it answers the round in which it was killed"
    np.testing.assert_array_equal(cluster.V, replayed(ratings, config, cluster.homes, lines))
    no_rating_is_lost(cluster, ratings)


@pytest.mark.parametrize("who", ["coordinator", "worker", "both"])
def test_a_killed_server_goes_on_from_its_last_round_to_the_same_model(tmp_path: Path, who: str) -> None:
    ratings, config = small_ratings(), exact(rounds=ROUNDS)
    with Cluster(tmp_path, ratings, config, workers=2) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        if who in ("coordinator", "both"):
            kill(cluster.coordinator)
        if who in ("worker", "both"):
            kill(cluster.workers[0])
        cluster.finish()
    # nothing was lost: nodes that had computed a round send its answer again instead of computing it anew
    np.testing.assert_array_equal(cluster.V, simulated(ratings, config))
    no_rating_is_lost(cluster, ratings)


def test_a_coordinator_that_slept_past_its_lease_does_no_harm(tmp_path: Path) -> None:
    """Another one takes over and finishes; what the sleeper wanted to write is refused when it wakes."""
    ratings, config = small_ratings(), exact(rounds=ROUNDS)
    with Cluster(tmp_path, ratings, config) as cluster:
        standby = cluster.keep(Child(cluster.coordinator.command, tmp_path / "standby.log"))
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        asleep = cluster.journal.progress()["pid"]
        os.kill(asleep, signal.SIGSTOP)
        try:
            cluster.finish()
        finally:
            os.kill(asleep, signal.SIGCONT)
        log = (tmp_path / "standby.log", tmp_path / "server.log")
        wait_until(lambda: any("another process coordinates" in file.read_text() for file in log))
        assert standby.process is not None
        assert asleep in (standby.process.pid, getattr(cluster.coordinator.process, "pid", 0)), "it lives"
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [*range(1, ROUNDS + 1)]
    np.testing.assert_array_equal(cluster.V, simulated(ratings, config))


def test_server_and_node_killed_together_go_on(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=ROUNDS)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        cluster.kill_node(1)
        cluster.kill_server()
        cluster.finish()
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [*range(1, ROUNDS + 1)]
    np.testing.assert_array_equal(cluster.V, replayed(ratings, config, cluster.homes, lines))
    no_rating_is_lost(cluster, ratings)


@pytest.mark.parametrize("soon", [True, False], ids=["while it starts", "when it is up"])
def test_a_killed_command_leaves_no_process_and_no_port_behind(tmp_path: Path, soon: bool) -> None:
    """kill -9 of `server up` itself: its workers end with it, and the next one takes the port."""
    home, port = tmp_path / "server", server_port()
    words = ["server", "up", "--port", str(port), "--home", str(home)]
    first = Child(python_module("fedrecplus", *words), tmp_path / "log")
    again = Child(first.command, tmp_path / "log")
    first.start()
    assert first.process is not None
    try:
        wait_until(lambda: len(children_of(first.process.pid)) == 2)
        if not soon:
            wait_until(ServerHome.load(home).is_up)
        left = children_of(first.process.pid)
        kill(first)
        again.start()
        wait_until(ServerHome.load(home).is_up)
        wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in left))
    finally:
        for child in (first, again):
            child.end()


def children_of(parent: int) -> list[int]:
    """Processes that a process has started."""
    threads = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def test_a_full_disk_at_a_client_costs_its_uploads_and_nothing_else(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=3 * ROUNDS)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("round", 0) >= 1)
        _let_files_grow(cluster, 0, 20_000)  # smaller than the store is
        cluster.wait_for(lambda _: any("node-storage" in line["lost"].values() for line in cluster.journal.lines()))
        _let_files_grow(cluster, 0, resource.RLIM_INFINITY)
        cluster.finish()
    lines = cluster.journal.lines()
    assert lines[-1]["refusals"]["refused"].get("node-storage", 0) >= 1
    assert not lines[-1]["refusals"]["strikes"], "a full disk is no offence"
    np.testing.assert_array_equal(cluster.V, replayed(ratings, config, cluster.homes, lines))
    no_rating_is_lost(cluster, ratings)


def _let_files_grow(cluster: Cluster, number: int, most: int) -> None:
    """The limit on sizes of a node's files: writing fails there as on a full disk."""
    process = cluster.nodes[number].process
    assert process is not None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
