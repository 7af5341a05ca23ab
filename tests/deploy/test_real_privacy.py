"""The server never sees ratings or user factors: not on the wire before encryption, not on its disk."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config, change
from fedrecplus.data import Scale
from fedrecplus.data.ratings import Ratings
from fedrecplus.engines import engine_of, prepare, rounds
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.cluster import Cluster, before_all, exact
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

# Python imports a module of this name when it starts: a node writes down what it sends to the server
TAP = """
import os
from pathlib import Path
from http.client import HTTPConnection

def tap(send):
    def tapped(self, content):
        if self.port == int(os.environ["TAP_PORT"]):
            with Path(os.environ["TAP_FOLDER"], str(os.getpid())).open("ab") as file:
                file.write(bytes(content))
        return send(self, content)
    return tapped

HTTPConnection.send = tap(HTTPConnection.send)

from fedrecplus.deploy.node import node
sealed = node.seal

def seal(content, *key):  # what is in an answer, too
    with Path(os.environ["TAP_FOLDER"], str(os.getpid())).open("ab") as file:
        file.write(bytes(content))
    return sealed(content, *key)

node.seal = seal

if os.environ.get("LEAK"):
    import numpy as np
    from fedrecplus.deploy.device import round

    honest, train_locally = round.encode_reply, round.train_locally
    known = {}
    def noting(*args):
        trained = train_locally(*args)
        known["ratings"] = np.concatenate([client.ratings for _, client in trained])
        known["U"] = np.concatenate([client.U for _, client in trained])
        return trained
    def leaking(*args):
        packet = honest(*args)
        packet.arrays.update(known)
        return packet
    round.train_locally, round.encode_reply = noting, leaking
"""


class Needles:
    """Numbers as they would look in a message or a file: one in 64 bits, two neighbours in 32 bits, one as text.

    A single number in 32 bits would be found by chance in megabytes of other numbers, and so would round ones.
    """

    def __init__(self, rows: list[np.ndarray], decimals: int | None = None) -> None:
        singles = [number for row in rows for number in row.astype(np.float64) if number.tobytes()[:3] != bytes(3)]
        pairs = [row[at : at + 2].astype(np.float32) for row in rows for at in range(len(row) - 1)]
        self.raw = {number.tobytes() for number in singles}
        self.raw |= {pair.tobytes() for pair in pairs if all(part.tobytes()[:2] != bytes(2) for part in pair)}
        texts = [] if decimals is None else sorted({f"{number:.{decimals}f}" for number in singles})
        self.text = re.compile(rb"(?<![\d.])(?:%s)(?!\d)" % "|".join(map(re.escape, texts)).encode()) if texts else None

    def found(self, haystack: bytes) -> int:
        in_words = len(set(self.text.findall(haystack))) if self.text else 0
        needles = np.frombuffer(b"".join(sorted(self.raw)), np.uint64)
        likely = np.zeros(1 << 16, dtype=bool)
        likely[(needles & np.uint64(0xFFFF)).astype(np.uint16)] = True
        hits = set[int]()
        for offset in range(min(8, len(haystack))):
            words = np.frombuffer(haystack, np.uint64, (len(haystack) - offset) // 8, offset)
            some = words[likely[words.astype(np.uint16)]]  # few are left, which makes it quick
            hits |= set(some[np.isin(some, needles)].tolist())
        return len(hits) + in_words


def canaries(ratings: Ratings, config: Config) -> tuple[Needles, Needles]:
    """Every rating, and every factor of every round."""
    problem, engine = prepare(ratings, config), engine_of(config)
    rated = [ratings.of(client)[1] for client in range(ratings.clients)]
    longer = replace(problem, config=change(config, "server.rounds", config.server.rounds + 1))
    states = [engine.start(problem), *(state for state, _ in rounds(engine, longer))]
    factors = [row[:-1] for state in states for row in state.private.U]
    return Needles(rated, decimals=4), Needles(factors)


class Snapshots:
    """Every content that any file of some folders was seen with."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders, self.seen, self.contents = folders, dict[Path, tuple[int, int]](), set[bytes]()

    def look(self) -> None:
        for file in (file for folder in self.folders for file in folder.rglob("*")):
            try:
                facts = file.stat()
                stamp = (facts.st_mtime_ns, facts.st_size)
                if file.is_file() and self.seen.get(file) != stamp:
                    self.seen[file] = stamp
                    self.contents.add(file.read_bytes())
            except OSError:  # gone meanwhile
                continue

    def everything(self) -> bytes:
        self.look()
        return b"".join(self.contents)


def spied_run(
    folder: Path, ratings: Ratings, config: Config, leaking_until: Callable[[bytes, bytes], bool] | None = None
) -> tuple[bytes, bytes]:
    """What the nodes sent, and everything that was on the server's disk at any time.

    Nodes that leak never come to an end, since all their answers are refused; it is over when enough is seen of them.
    """
    (folder / "tap").mkdir(parents=True)
    (folder / "captured").mkdir()
    (folder / "tap" / "sitecustomize.py").write_text(TAP)
    with Cluster(folder, ratings, config, strikes=10**6) as cluster:
        cluster.node_environment = {
            "PYTHONPATH": before_all(folder / "tap"),
            "TAP_FOLDER": str(folder / "captured"),
            "TAP_PORT": str(cluster.server.port),
            **({"LEAK": "1"} if leaking_until else {}),
        }
        sent, disk = Snapshots([folder / "captured"]), Snapshots([cluster.server.path, cluster.folder])

        def over() -> bool:
            time.sleep(1.0)
            disk.look()
            if leaking_until:
                return leaking_until(sent.everything(), disk.everything())
            return RunFolder(cluster.folder).finished

        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda _: over())
        if not leaking_until:
            cluster.finish()
    return sent.everything(), disk.everything()


def test_no_rating_and_no_factor_reaches_the_server_and_the_test_would_find_them(tmp_path: Path) -> None:
    config = exact("fedrec+paper", rounds=3)  # a model that keeps factors on the device
    ratings = small_ratings(scale=Scale(1.0, 5.0, 0.0001))
    rated, factors = canaries(ratings, config)
    assert len(rated.raw) > 300
    sent, disk = spied_run(tmp_path / "honest", ratings, config)
    assert len(sent) > 50_000
    assert b"delta" in sent, "uploads were captured, before encryption"
    assert b'"bytes_up"' in disk, "the run's journal was captured, in the database"
    assert b"PRIVATE KEY" in disk, "and the server's home"
    assert rated.found(sent) == 0
    assert factors.found(sent) == 0
    assert rated.found(disk) == 0
    assert factors.found(disk) == 0
    # the same search finds both in what nodes send that leak them, and on the server's disk not even then
    _, disk = spied_run(
        tmp_path / "leaking", ratings, config, lambda sent, _: min(rated.found(sent), factors.found(sent)) > 30
    )
    assert rated.found(disk) == 0
