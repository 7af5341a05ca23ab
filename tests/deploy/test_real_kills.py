"""kill -9 of nodes and servers, and a full disk: the run goes on, and the model is what the uploads make it."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from tests.deploy.cluster import Cluster, exact
from tests.deploy.replay import replayed, simulated
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

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
    ratings, config = small_ratings(), exact(rounds=5)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        cluster.kill_node(0)
        cluster.finish()
        assert cluster.nodes[0].restarts >= 1
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [1, 2, 3, 4, 5]
    assert len(lines[-1]["nodes"]) == 3, "the killed node is back"
    assert sum(len(line["nodes"]) == 3 for line in lines) >= 4
    assert max(line["seconds"] for line in lines) < DEADLINE, "it answers the round in which it was killed"
    np.testing.assert_array_equal(cluster.V, replayed(ratings, config, cluster.homes, lines))
    no_rating_is_lost(cluster, ratings)


@pytest.mark.parametrize("moment", ["between", "within"])
def test_a_killed_server_goes_on_from_its_last_round_to_the_same_model(tmp_path: Path, moment: str) -> None:
    ratings, config = small_ratings(), exact(rounds=4)
    with Cluster(tmp_path, ratings, config) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        if moment == "between":
            cluster.wait_for(lambda _: len(cluster.journal.lines()) >= 2)
        else:
            cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1 and now["answered"] > 0)
        cluster.kill_server()
        cluster.finish()
        assert cluster.superlink is not None
        assert cluster.superlink.restarts >= 1
    # nothing was lost: nodes that had computed a round send its answer again instead of computing it anew
    np.testing.assert_array_equal(cluster.V, simulated(ratings, config))
    no_rating_is_lost(cluster, ratings)


def test_server_and_node_killed_together_go_on(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=4)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        cluster.kill_node(1)
        cluster.kill_server()
        cluster.finish()
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [1, 2, 3, 4]
    np.testing.assert_array_equal(cluster.V, replayed(ratings, config, cluster.homes, lines))
    no_rating_is_lost(cluster, ratings)


def test_a_full_disk_at_a_client_costs_its_uploads_and_nothing_else(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=4)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("round", 0) >= 1)
        _let_files_grow(cluster, 0, 20_000)  # smaller than the store is
        cluster.wait_for(lambda now: now.get("round", 0) >= 3)
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
