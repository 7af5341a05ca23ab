"""Groups of real processes: the model of a simulation; one who spoils, a group below its least size; browsers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config
from tests.deploy.browsers import DevicePage, cluster_of, demonstration
from tests.deploy.cluster import Cluster, before_all
from tests.deploy.summing import secure_config
from tests.deploy.test_grouped_sums import expected, in_groups
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

NODES, GROUPS, SPOILER = 9, 3, 4
RATINGS = small_ratings(clients=18, items=30)
SPOILS = """
import os, sys
if any(part.endswith("node{place}") or "/node{place}/" in part for part in sys.orig_argv):
    import numpy as np
    from fedrecplus.deploy.device import sums
    honest = sums._vector
    def vector(*asked):
        found = honest(*asked)
        found.updates += np.asarray(2**27, dtype=found.updates.dtype)
        return found
    sums._vector = vector
"""
"""one node adds three to every number of its vector"""


def grouped(rounds: int) -> Config:
    return secure_config(rounds=rounds, channel__groups=GROUPS, channel__fewest_contributors=1)


def by_place(cluster: Cluster) -> list[dict[str, Any]]:
    """The journal, with nodes by their place instead of their number."""
    places = {int(node["number"]): 1 + int(node["name"][4:]) for node in cluster.server.roster.everybody()}
    lines = cluster.journal.lines()
    return [{**line, "groups": [[places[node] for node in group] for group in line["groups"]]} for line in lines]


def test_one_who_spoils_is_left_out_with_its_group_and_so_is_a_group_that_loses_somebody(tmp_path: Path) -> None:
    config = grouped(rounds=2)
    (tmp_path / "spoils").mkdir()
    (tmp_path / "spoils" / "sitecustomize.py").write_text(SPOILS.replace("{place}", str(SPOILER - 1)))
    with Cluster(tmp_path, RATINGS, config, NODES, deadline=10.0) as cluster:
        cluster.node_environment = {"PYTHONPATH": before_all(tmp_path / "spoils")}
        cluster.start_nodes()
        cluster.wait_for_nodes()
        cluster.start_run()
        cluster.take_away_at(0, lambda now: now.get("round", 0) >= 1 and now.get("stage") == "share")
        cluster.finish()
        lines = by_place(cluster)
    assert [len(line["groups"]) for line in lines] == [GROUPS, GROUPS - 1]
    assert sorted(in_groups(lines[0])) == list(range(1, NODES + 1))
    assert 1 not in in_groups(lines[1]), "of two that are left, neither can be called odd"
    assert any(SPOILER in lines[0]["groups"][number] for number in lines[0]["odd_groups"])
    np.testing.assert_array_equal(cluster.V, expected(RATINGS, config, lines, NODES, SPOILER))


def test_browsers_and_nodes_step_from_their_groups_sums(browser: Any, tmp_path: Path) -> None:
    """Two pages beside ten nodes: every device draws the same groups, and answers every round."""
    config = demonstration(3, channel__groups=3)
    with cluster_of(tmp_path, config, 10, 12) as cluster:
        pages = [DevicePage(browser, cluster.server, f"browser {place}") for place in range(2)]
        for page in pages:
            page.rate({"0": 5, "3": 4, "7": 1, "12": 3})
            page.take_part()
        cluster.start_nodes()
        cluster.run()
        complaints = [page.complaints for page in pages]
        answered = [[line["stage"] for line in page.kept("device", "sent")].count("reveal") for page in pages]
    lines = cluster.journal.lines()
    assert [[len(group) for group in line["groups"]] for line in lines] == [[4, 4, 4]] * 3
    assert complaints == [[], []]
    assert answered == [3, 3]
