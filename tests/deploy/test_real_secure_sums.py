"""Secure sums over real processes: nodes killed at each stage, a server killed in the middle, nothing to be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import change
from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.training.privacy import LEDGER, budget_spent, privacy_lines
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.cluster import Cluster, before_all
from tests.deploy.replay import simulated
from tests.deploy.summing import expected, secure_config
from tests.deploy.test_real_privacy import TAP, Needles
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

NODES = 4
RATINGS = small_ratings(clients=16, items=30)
DEADLINE = 10.0
"""what a message costs that a killed node had taken"""
ALL = list(range(1, NODES + 1))


def nodes_of(cluster: Cluster) -> dict[str, int]:
    """Each node's number → its place."""
    return {str(node["number"]): 1 + int(node["name"][4:]) for node in cluster.server.roster.everybody()}


def test_nodes_may_die_at_each_stage_and_the_model_is_the_sum_of_those_who_stayed(tmp_path: Path) -> None:
    config = secure_config(rounds=3)
    with Cluster(tmp_path, RATINGS, config, NODES, deadline=DEADLINE) as cluster:
        cluster.start_nodes()
        cluster.wait_for_nodes()
        cluster.start_run()
        for number, stage in enumerate(("share", "mask", "reveal")):
            cluster.take_away_at(
                number,
                lambda now, n=number, s=stage: (
                    (now.get("round"), now.get("stage")) == (n, s) or now.get("round", 0) > n
                ),
            )
            cluster.wait_for(lambda now, n=number: now.get("round", 0) > n)
            cluster.bring_back(number)  # in time for the next round's keys
        cluster.finish()
        numbers = nodes_of(cluster)
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [1, 2, 3]
    assert all(3 <= len(line["nodes"]) <= NODES for line in lines)
    assert all(line["lost"] or line["silent"] for line in lines[:2]), "or else nobody died in time"
    lost_keys = [{int(numbers[n]) for n, why in line["lost"].items() if why.startswith("advertise")} for line in lines]
    summed = [sorted(int(numbers[node]) for node in line["nodes"]) for line in lines]
    asked = [{int(numbers[node]) for node in (*line["nodes"], *line["lost"], *line["silent"])} for line in lines]
    advertised = [
        [node for node in ALL if node in those and node not in gone]
        for those, gone in zip(asked, lost_keys, strict=True)
    ]
    np.testing.assert_array_equal(cluster.V, expected(RATINGS, config, advertised, summed, NODES))


def test_a_server_killed_while_a_sum_is_made_or_unmasked_ends_with_the_same_model_and_saw_no_upload(
    tmp_path: Path,
) -> None:
    """Every byte that nodes send is written down before encryption; no row of an upload is in it, or on a disk."""
    config, ratings = secure_config(rounds=2), small_ratings(clients=16, items=30, scale=Scale(1.0, 5.0, 0.0001))
    rated = Needles([ratings.of(client)[1] for client in range(ratings.clients)], decimals=4)
    for name in ("tap", "captured"):
        (tmp_path / name).mkdir()
    (tmp_path / "tap" / "sitecustomize.py").write_text(TAP)
    with Cluster(tmp_path, ratings, config, NODES, deadline=60.0) as cluster:
        cluster.node_environment = {
            "PYTHONPATH": before_all(tmp_path / "tap"),
            "TAP_FOLDER": str(tmp_path / "captured"),
            "TAP_PORT": str(cluster.server.port),
        }
        cluster.start_nodes()
        cluster.wait_for_nodes()
        cluster.start_run()
        for number, stage in ((0, "mask"), (1, "reveal")):
            cluster.wait_for(
                lambda now, n=number, s=stage: (now.get("round"), now.get("stage")) == (n, s) or now.get("round", 0) > n
            )
            cluster.kill_server()
        cluster.finish()
        folders = (tmp_path / "captured", cluster.server.path, cluster.folder)
        seen = b"".join(file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file())
    np.testing.assert_array_equal(cluster.V, simulated(ratings, config))
    assert b"POST /v1/work/" in seen, "answers were captured"
    assert rated.found(seen) == 0
    rows = 0
    for home in cluster.homes:
        with Store.open(home.store) as store:
            assert [state for (state,) in store.connection.execute("SELECT state FROM sums")] == [None]
            kept = Packet.of_bytes(store.value("SELECT content FROM answers"))
        for row in kept.arrays["delta"]:
            rows += 1
            assert row.tobytes() not in seen
            assert row.astype(np.float32).tobytes() not in seen
    assert rows > 50


def test_noise_of_the_nodes_survives_a_killed_server_and_what_it_cost_is_in_the_ledger(tmp_path: Path) -> None:
    """Killed while a sum is unmasked: it is finished as it was, and its release is counted, once or twice."""
    config, catalogue = secure_config(rounds=2), ItemCatalogue.published(RATINGS)
    for name, value in {
        "aggregation.rule": "uniform", "statistics.source": "public", "privacy.rule": "distributed",
        "privacy.epsilon": 8.0, "privacy.delta": 1e-3, "privacy.honest": 0.7,
    }.items():  # fmt: skip
        config = change(config, name, value)
    with Cluster(tmp_path, RATINGS, config, NODES, catalogue, deadline=60.0) as cluster:
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: (now.get("round"), now.get("stage")) == (0, "reveal") or now.get("round", 0) > 0)
        noted = [line["release"] for line in cluster.journal.book.lines()]
        cluster.kill_server()
        cluster.finish()
    assert noted[:1] == ["round 1"], "before anything is unmasked"
    lines = privacy_lines(cluster.folder / LEDGER)
    assert {line["release"] for line in lines} == {"round 1", "round 2"}
    assert len(lines) <= 3, "one round was killed, and may be counted twice"
    privacy = RunFolder(cluster.folder).result()["privacy"]
    assert privacy["epsilon"] == pytest.approx(budget_spent(lines, 1e-3))
    assert [line["round"] for line in cluster.journal.lines()] == [1, 2]
    assert np.isfinite(cluster.V).all()
    bare = change(config, "privacy.rule", "none")
    plain = expected(RATINGS, bare, [ALL] * 2, [ALL] * 2, NODES, public=catalogue.public)
    assert np.abs(cluster.V - plain).max() > 1e-3, "there is noise in it"
