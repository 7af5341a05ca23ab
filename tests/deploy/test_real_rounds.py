"""Five rounds with three nodes, real processes, TLS and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.cluster import Cluster, exact
from tests.deploy.replay import simulated
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow


def test_five_rounds_with_three_nodes_equal_five_simulated_rounds(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact()
    with Cluster(tmp_path, ratings, config) as cluster:
        cluster.start_nodes()
        cluster.run()
    np.testing.assert_array_equal(cluster.V, simulated(ratings, config))
    result = RunFolder(cluster.folder).result()
    assert result["rounds"] == 5
    assert result["deployment"]["dropouts"] == 0
    newcomer = Recommender.load(cluster.folder).fold_in({"3": 5.0, "7": 1.0})
    assert len(newcomer.recommend(4)) == 4
