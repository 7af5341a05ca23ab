"""Chromium as a device of a model whose items grow: one browser is there from the beginning, one comes after rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import change
from fedrecplus.deploy.server import Deployment, go_on
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.steps import first_state, grown_state
from fedrecplus.web.page.bundle import write_bundle
from tests.deploy.browsers import ITEMS, PUBLIC, DevicePage, demonstration, ratings_of_nodes, stepped
from tests.deploy.cluster import Cluster
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow

GROWN = ItemCatalogue.published(PUBLIC)
ADDED, NODES, ROUNDS = 4, 3, 2
BEGUN = GROWN.first(ITEMS - ADDED)
EARLY = {"0": 5.0, "3": 4.0, "7": 1.0, "12": 3.0}
LATE = {"1": 2.0, "3": 5.0, f"{ITEMS - 1}": 4.0}


def test_browsers_take_part_when_items_have_come_and_one_missed_the_first_rounds(browser: Any, tmp_path: Path) -> None:
    """Both make the new rows, and the late one the rounds before it, from the sums that the log names."""
    config = demonstration(ROUNDS, server__cooldown=0.9)
    write_bundle(tmp_path / "server" / "page")
    people, terms = small_ratings(clients=NODES, items=ITEMS - ADDED, seed=7), {"rounds": 2 * ROUNDS, "growth": 0.2}
    with Cluster(tmp_path, people, config, NODES, BEGUN, wanted=NODES + 1, deadline=GIVE_UP, **terms) as cluster:
        early = DevicePage(browser, cluster.server, "early")
        early.rate(EARLY)
        early.take_part()
        cluster.start_nodes()
        cluster.run()
        before, cluster.folder = cluster.folder, tmp_path / "second"
        cluster.journal = go_on(
            cluster.server.database, before, cluster.folder, config, Deployment(NODES + 2, deadline=GIVE_UP), GROWN,
            overwrite=False,
        )  # fmt: skip
        late = DevicePage(browser, cluster.server, "late")
        asked = list[str]()
        late.page.on("request", lambda request: asked.append(request.url))
        late.rate(LATE)
        late.take_part()
        cluster.run()
        early.page.get_by_text(f"Item {ITEMS - 1}").first.wait_for()
        told = early.page.inner_text("#part-added")
        recorded, complaints = [early.vectors(), late.vectors()], early.complaints + late.complaints
    assert complaints == []
    assert all(f"Item {number}" in told for number in range(ITEMS - 3, ITEMS)), told
    assert any("/v1/log/" in url for url in asked), "it asked for what it missed"
    assert [sorted(vectors) for vectors in recorded] == [[0, 1, 2, 3], [2, 3]]
    state, nodes = first_state(config, BEGUN.public), ratings_of_nodes(cluster)
    for _ in range(ROUNDS):
        state = stepped(state, nodes, [(EARLY, recorded[0])], config, BEGUN)
    state = grown_state(state, GROWN.public, config)
    config = change(config, "server.rounds", 2 * ROUNDS)
    for _ in range(ROUNDS):
        state = stepped(state, nodes, [(EARLY, recorded[0]), (LATE, recorded[1])], config, GROWN)
    np.testing.assert_array_equal(cluster.V, state.V)
