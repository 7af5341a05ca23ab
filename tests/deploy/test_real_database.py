"""PostgreSQL under a running server: stopped and started in the middle of a round, and several machines' workers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from fedrecplus.deploy.http.answers import KEPT, Answer, AnswerWriter
from fedrecplus.deploy.http.waiting import WaitingRoom
from fedrecplus.deploy.operate.processes import server_port
from fedrecplus.deploy.server import CoordinatedRun, Database, Deployment, Lease, begin
from fedrecplus.deploy.server.lease import is_held
from fedrecplus.deploy.server.link import DatabaseLink
from fedrecplus.deploy.server.presence import present_nodes, say_present
from fedrecplus.deploy.server.roster import Roster
from fedrecplus.deploy.server.schema import metadata
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from tests.deploy.cluster import Cluster, exact, kill
from tests.deploy.replay import simulated
from tests.small_data import small_ratings

pytestmark = pytest.mark.slow

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), Path("/usr/bin"))
ROUNDS = 12
ROOT = os.geteuid() == 0


class Postgres:
    """A PostgreSQL of this test, run by a user that isn't root, which it refuses."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, server_port()
        if ROOT:
            shutil.chown(folder, "postgres", "postgres")
        self._run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "fedrec")

    @property
    def address(self) -> str:
        return f"postgresql+psycopg://fedrec@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-o", options, "-l", log, "start")

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", how, "-w", "stop")

    def _run(self, program: str, *words: str) -> None:
        as_another = ["runuser", "-u", "postgres", "--"] if ROOT else []
        command = [*as_another, str(PROGRAMS / program), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are root's alone
        postgres = Postgres(Path(folder))
        postgres.start()
        try:
            yield postgres
        finally:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", postgres.port)) == 0:
                    postgres.stop()


def test_machines_whose_clocks_differ_are_one_server(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of a worker whose clock was ahead were asked nothing, and those of one that was behind were not seen."""
    database, clock = Database(postgres.address), time.time
    database.upgrade()
    items, terms = ItemCatalogue.of(small_ratings()), Deployment(1)
    run = begin(database, tmp_path / "run", exact(), terms, items, {"dataset": "small"})
    node, _ = Roster(database).admit(bytes(32))
    lease = Lease(database)
    assert lease.take()
    (question,) = DatabaseLink(CoordinatedRun(lease, run.number)).ask({node: Packet({"round": 0}, {})}, 60.0)
    for ahead in (-3600.0, 3600.0):
        with monkeypatch.context() as elsewhere, contextlib.closing(Database(postgres.address)) as there:
            elsewhere.setattr(time, "time", lambda ahead=ahead: clock() + ahead)
            assert is_held(there)
            assert not Lease(there).take()
            assert WaitingRoom(there, "elsewhere")._open_questions() == {node: question}
            say_present(there, "elsewhere", [node], {})
            assert present_nodes(database) == [node]
            say_present(database, "elsewhere", [], {})
            code = Roster(there).invite("anna", 600.0)
            if ahead > 0:
                assert AnswerWriter(there).stored([Answer(question, node, b"sealed")]) == [KEPT]
        assert Roster(database).enrol(code, bytes([1 + (ahead > 0), *bytes(31)]), "") is not None
    database.close()


def test_a_database_stopped_and_started_in_a_round_costs_nothing_but_time(postgres: Postgres, tmp_path: Path) -> None:
    ratings, config = small_ratings(), exact(rounds=ROUNDS)
    with Cluster(tmp_path, ratings, config, workers=2, address=postgres.address) as cluster:
        with cluster.server.database.reading() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        cluster.start_nodes()
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("phase") == "round" and now["round"] >= 1)
        postgres.stop()
        postgres.start()
        cluster.wait_for(lambda now: now.get("phase") == "finished" or now.get("round", 0) >= 4)
        kill(cluster.coordinator)
        cluster.finish()
        assert [line["round"] for line in cluster.journal.lines()] == [*range(1, ROUNDS + 1)]
    np.testing.assert_array_equal(cluster.V, simulated(ratings, config))
