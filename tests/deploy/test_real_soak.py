"""Minutes of random kills among fifty nodes. FEDRECPLUS_SOAK_SECONDS sets how long; 300 unless told.

The nodes run in five processes: a kill -9 of one of them takes ten nodes at once. Besides, single nodes end at a call
to the server chosen by chance (``benchmarks/crowd.py``).
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fedrecplus.deploy.process import CA, Supervised

from fedrecplus.config import change, dumps, load_config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.training.run_folder import CONFIG
from tests.deploy.cluster import Cluster, exact, kill_group
from tests.deploy.replay import replayed
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

NODES, PROCESSES = 50, 5
SECONDS = float(os.environ.get("FEDRECPLUS_SOAK_SECONDS", "300"))


def test_random_kills_cost_uploads_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratings = small_ratings(clients=NODES)
    config = change(exact(rounds=100_000), "server.cooldown", 0.0)  # rounds change below
    dice = random.Random(int(SECONDS))
    kills = {"nodes": 0, "server": 0, "nodes and server": 0, "server without its app": 0, "app": 0}
    with Cluster(tmp_path, ratings, config, NODES, deadline=30.0, quorum=1.0) as cluster:
        crowds = [_start_crowd(cluster, number) for number in range(PROCESSES)]
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(dice.uniform(3.0, 20.0))
            victim = dice.choices(list(kills), weights=[6, 2, 1, 1, 1])[0]
            kills[victim] += 1
            if "nodes" in victim:
                kill_group(dice.choice(crowds))
            if "server" in victim:
                cluster.kill_superlink()
            if victim in ("server", "nodes and server", "app"):
                cluster.kill_app()
        _end_after(cluster, 3)
        cluster.finish()
    lines = cluster.journal.lines()
    whole = sum(len(line["clients"]) == ratings.clients for line in lines)
    with capsys.disabled():
        print(f"\n{len(lines)} rounds, {whole} of them with everybody; kills: {kills}")
    assert [line["round"] for line in lines] == list(range(1, len(lines) + 1)), "no round twice, none left out"
    final = load_config(cluster.folder / CONFIG)
    np.testing.assert_array_equal(cluster.V, replayed(ratings, final, cluster.homes, lines))
    _every_rating_is_there(cluster, ratings)


def _start_crowd(cluster: Cluster, number: int) -> Supervised:
    """Every fifth node, in one process that is started again when it is killed."""
    homes, folder = cluster.homes[number::PROCESSES], cluster.folder.parent
    (folder / f"homes{number}").write_text("\n".join(str(home.path) for home in homes))
    command = [
        sys.executable, "-m", "benchmarks.crowd", f"127.0.0.1:{cluster.server.port}",
        "--ca", str(cluster.server.certificates / CA), "--homes", str(folder / f"homes{number}"),
        "--out", str(folder / f"crowd{number}.json"), "--kills", "0.01", "--poll", "1",
    ]  # fmt: skip
    return cluster.keep(Supervised(command, dict(os.environ), folder / f"crowd{number}.log"))


def _end_after(cluster: Cluster, rounds: int) -> None:
    """Shorten the run to a few rounds from here. How long a run goes on may change; its server must read it anew."""
    done = max((line["round"] for line in cluster.journal.lines()), default=0)
    path = cluster.folder / CONFIG
    path.write_text(dumps(change(load_config(path), "server.rounds", done + rounds)), encoding="utf-8")
    cluster.kill_server()


def _every_rating_is_there(cluster: Cluster, ratings: Ratings) -> None:
    for number, home in enumerate(cluster.homes):
        with Store.open(home.store) as store:
            assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            for client, stored in store.ratings().items():
                assert client % len(cluster.homes) == number
                items, values = ratings.of(client)
                assert stored == {str(item): float(value) for item, value in zip(items, values, strict=True)}
