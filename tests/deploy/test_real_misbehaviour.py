"""A node with an admitted key that sends what it should not: over the wire, round by round."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.training.run_folder import RunFolder
from tests.deploy.cluster import Cluster, before_all, exact
from tests.deploy.replay import replayed
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

DEADLINE = 60.0

# Python imports a module of this name when it starts. The node computes its round honestly, then sends something else;
# and each message to the server is announced once more when its answer has been given.
TAP = """
import json, os, time
from pathlib import Path
import numpy as np
from fedrecplus.deploy.node import fleet, running
from fedrecplus.deploy.wire import Packet

honest = running.answer

def spoil(packet, **arrays):
    return Packet(packet.facts, {**packet.arrays, **arrays})

def nan(packet):
    return spoil(packet, delta=packet.arrays["delta"] * np.nan)

def leap(packet):
    return spoil(packet, delta=packet.arrays["delta"] + 1000.0)

def far(packet):
    return spoil(packet, items=packet.arrays["items"] + 10**6)

def ballast(packet):
    return spoil(packet, ballast=np.zeros(10**6))

def old(packet):
    return Packet({**packet.facts, "round": 0}, packet.arrays)

def wait_for_the_others():
    while json.loads(Path(os.environ["PROGRESS"]).read_text()).get("answered") != 2:
        time.sleep(0.05)

def of_others(packet):
    wait_for_the_others()
    return spoil(packet, clients=packet.arrays["clients"] - 1)

def withheld(packet):
    Path(os.environ["WITHHOLD"]).touch()
    return packet

def slow(packet):
    time.sleep(float(os.environ["DEADLINE"]) + 5)
    return packet

def broken(packet):
    raise RuntimeError("a fault of the node")

class Raw:
    def __init__(self, content):
        self.content = content
    def to_bytes(self):
        return self.content

def garbage(packet):
    return Raw(b"hello")

def pickled(packet):
    return Raw(b"\\x80\\x04\\x8c\\x02os.")

TRICKS = [lambda packet: packet, nan, leap, far, ballast, garbage, old, of_others, withheld, slow, broken, pickled]

def tricky(packet, path, **more):
    return TRICKS[packet.facts["round"]](honest(packet, path, **more))

running.answer = tricky

announced, call = [], fleet.Fleet.call

def meddling(self, name, request, *rest, **more):
    if name == "push-messages":
        announced[:] = [request]
        if Path(os.environ["WITHHOLD"]).exists():
            request = {**request, "attached": []}
    elif name == "pull-messages" and announced:
        call(self, "push-messages", announced.pop())
        with Path(os.environ["TWICE"]).open("a") as file:
            file.write("again\\n")
        Path(os.environ["WITHHOLD"]).unlink(missing_ok=True)
    elif name == "push-object" and Path(os.environ["WITHHOLD"]).exists():
        return {"stored": True}
    return call(self, name, request, *rest, **more)

fleet.Fleet.call = meddling
"""
ROUNDS = 14


def test_what_a_misbehaving_node_sends_is_refused_counted_and_never_touches_the_model(tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=ROUNDS)
    (tmp_path / "tap").mkdir()
    (tmp_path / "tap" / "sitecustomize.py").write_text(TAP)
    with Cluster(tmp_path, ratings, config, deadline=DEADLINE, strikes=8) as cluster:
        cluster.start_node(cluster.homes[0])
        cluster.start_node(cluster.homes[1])
        cluster.node_environment = {
            "PYTHONPATH": before_all(tmp_path / "tap"),
            "PROGRESS": str(cluster.folder / "progress.json"),
            "TWICE": str(tmp_path / "twice"),
            "WITHHOLD": str(tmp_path / "withhold"),
            "DEADLINE": str(DEADLINE),
        }
        cluster.start_node(cluster.homes[2])
        cluster.run()
    lines = cluster.journal.lines()
    last = lines[-1]["refusals"]
    assert last["refused"] == {
        "non-finite": 1, "out-of-range": 2, "oversized": 1, "malformed": 2, "late": 2, "duplicate": 1, "node-fault": 1,
    }  # fmt: skip
    assert list(last["strikes"].values()) == [8], "one node was blamed, for all but being slow and breaking down"
    asked = [len(line["nodes"]) + len(line["lost"]) + len(line["silent"]) for line in lines]
    assert asked == [3] * 12 + [2] * (ROUNDS - 12), "then it is set aside"
    assert max(line["seconds"] for line in lines) < 2 * DEADLINE, "contents that never come hold nobody up"
    senders = Counter(client % 3 for line in lines for client in line["clients"])
    assert senders[2] == sum(client % 3 == 2 for client in range(ratings.clients)), "its honest round counts, once"
    assert len((tmp_path / "twice").read_text().splitlines()) >= 8, "it said things twice"
    np.testing.assert_array_equal(cluster.V, replayed(ratings, config, cluster.homes, lines))
    log = (cluster.folder / "server.log").read_text()
    assert log.count("refused an answer of node") == 10
    assert "is set aside after 8 strikes" in log
    assert RunFolder(cluster.folder).result()["deployment"]["refused"] == last["refused"]
