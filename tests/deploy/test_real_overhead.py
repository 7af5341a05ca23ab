"""What our code adds to a round, over an empty answer under the same Flower."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.node import NodeHome
from tests.deploy.cluster import Cluster, before_all, exact
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

ROUNDS = 5

# Python imports a module of this name when it starts: a node writes down how long it took for each message
TAP = """
import os, time
from pathlib import Path
import numpy as np
from fedrecplus.deploy.node import running
from fedrecplus.deploy.wire import Packet

honest = running.answer

def empty(packet, path, **more):
    facts = {name: packet.facts[name] for name in ("version", "model", "round")}
    person = np.array([os.getpid()])
    one, item = np.ones(1, np.int32), np.zeros(1, np.int32)
    return Packet(facts, {"clients": person, "rows": one, "items": item, "delta": 0 * packet.arrays["V"][:1]})

def timed(packet, path, **more):
    started, processor = time.perf_counter(), time.process_time()
    reply = (empty if os.environ.get("EMPTY") else honest)(packet, path, **more)
    with Path(path).with_name("times").open("a") as file:
        file.write(f"{time.perf_counter() - started} {time.process_time() - processor}\\n")
    return reply

running.answer = timed
"""


@dataclass(frozen=True)
class Times:
    """Medians in seconds."""

    round: float
    app: float
    processor: float


def times(folder: Path, ratings: Ratings, *, empty: bool) -> Times:
    (folder / "tap").mkdir(parents=True)
    (folder / "tap" / "sitecustomize.py").write_text(TAP)
    with Cluster(folder, ratings, exact(rounds=ROUNDS)) as cluster:
        cluster.node_environment = {"PYTHONPATH": before_all(folder / "tap"), **({"EMPTY": "1"} if empty else {})}
        cluster.start_nodes()
        cluster.run()
    rounds = [line["seconds"] for line in cluster.journal.lines()]
    nodes = [_times_of(home) for home in cluster.homes]
    assert [len(node) for node in nodes] == [ROUNDS] * 3
    if not empty:
        _check_accounts(cluster.homes, nodes)
    wall, processor = np.concatenate(nodes).T
    return Times(*(float(np.median(values)) for values in (rounds, wall, processor)))


def _times_of(home: NodeHome) -> np.ndarray:
    return np.array([line.split() for line in (home.path / "times").read_text().splitlines()], dtype=float)


def _check_accounts(homes: list[NodeHome], nodes: list[np.ndarray]) -> None:
    """What a node says a round has cost is a part of what was measured around it."""
    for home, times in zip(homes, nodes, strict=True):
        with Store.open(home.store) as store:
            said = [line["seconds"] for line in store.sent()]
        assert all(0 < seconds <= wall for seconds, wall in zip(said, times[:, 0], strict=True)), (said, times)


def test_our_share_of_a_round_is_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratings = small_ratings(clients=3)
    nothing = times(tmp_path / "empty", ratings, empty=True)
    ours = times(tmp_path / "ours", ratings, empty=False)
    # in processor time, which no other process takes away; shown beside the time by the clock
    share = (ours.processor - nothing.processor) / ours.round
    with capsys.disabled():
        print(
            f"\nmedian of {ROUNDS} rounds: {ours.round:.2f} s, with an empty app {nothing.round:.2f} s; "
            f"in the app {1000 * ours.app:.1f} ms ({1000 * ours.processor:.1f} ms of processor), "
            f"in the empty one {1000 * nothing.app:.1f} ms; our share {100 * share:.1f} %, "
            f"under a load of {os.getloadavg()[0]:.1f}"
        )
    assert share < 0.25
