"""Items that come between two runs of a model, over real processes, one of which joins only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import change
from fedrecplus.deploy.device import CHANNELS, Policy, Store, agree, known_catalogues, save_policy
from fedrecplus.deploy.server import Deployment, go_on
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.task import Task
from tests.deploy.cluster import Cluster, exact
from tests.deploy.test_new_items import ADDED, WHOLE, first_items, simulated
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow

NODES = 3


def test_an_item_that_comes_between_rounds_is_trained_by_nodes_that_agreed_to_growth(tmp_path: Path) -> None:
    """The last node comes after the first run, and makes that one's steps from the sums that the server keeps."""
    config = change(exact("fedmf", rounds=2), "model.rule", "reconstruction")
    begun = ItemCatalogue.of(first_items(WHOLE))
    grown = begun.grown(ItemCatalogue.of(WHOLE))
    terms = {"rounds": 4, "growth": 0.2}
    with Cluster(tmp_path, WHOLE, config, NODES, begun, wanted=NODES - 1, **terms) as cluster:
        task = Task.parse(cluster.journal.deployment.task)
        assert task.kept >= 2, "or else a late node may take the table as it comes"
        for home in cluster.homes:
            with Store.open(home.store) as store:
                agree(store, task)
                with store.changing():
                    save_policy(store, Policy(channels=CHANNELS, bare=True))
                    store.put("facts", [("batch", "1")])
        for home in cluster.homes[:-1]:
            cluster.start_node(home)
        cluster.run()
        entered = config.model.new_items(cluster.V, grown.public, config.seed)
        cluster.folder = tmp_path / "second"
        cluster.journal = go_on(
            cluster.server.database, tmp_path / "run", cluster.folder, config,
            Deployment(NODES, deadline=GIVE_UP), grown, overwrite=False,
        )  # fmt: skip
        assert cluster.journal.deployment.task == task.text, "nobody is asked anew"
        cluster.start_node(cluster.homes[-1])
        cluster.run()
        with Store.open(cluster.homes[0].store) as store:
            newest = known_catalogues(store)[-1]
            assert (newest["items"], len(newest["added"])) == (len(grown.ids), ADDED), "its owner is told"
        assert [len(line["nodes"]) for line in cluster.journal.lines()] == [NODES] * 2
    early = WHOLE.client_of_rating % NODES != NODES - 1
    whole = simulated(begun, grown, change(config, "server.rounds", 4), after=2, early=early)
    np.testing.assert_array_equal(cluster.V, whole)
    assert np.abs(cluster.V[-ADDED:] - entered).max() > 0.01, "the new rows were trained"
