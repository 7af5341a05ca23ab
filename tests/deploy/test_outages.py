"""A database that is away or busy for a while, certificates that expired, a home that runs twice."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import QueuePool, event, select
from sqlalchemy.exc import TimeoutError as NoConnection

from fedrecplus.deploy import server
from fedrecplus.deploy.node import NodeHome, ServerConnection, join_by, trust
from fedrecplus.deploy.node.connection import NoAnswer, Rejected
from fedrecplus.deploy.operate import certificates
from fedrecplus.deploy.operate.runs import run_to_the_end
from fedrecplus.deploy.operate.upkeep import look_over
from fedrecplus.deploy.server import Database, Deployment, Lease
from fedrecplus.deploy.server.presence import present_nodes
from fedrecplus.deploy.server.schema import nodes
from fedrecplus.errors import UserError
from tests.deploy.in_process import database_of, prepared, small_config, stored
from tests.deploy.running import Running
from tests.small_data import small_ratings
from tests.waiting import wait_until


@contextlib.contextmanager
def away(database: Database, table: str = "nodes") -> Iterator[None]:
    """A database that fails whoever asks for a table."""
    with database.changing() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO gone")
    yield
    with database.changing() as connection:
        connection.exec_driver_sql(f"ALTER TABLE gone RENAME TO {table}")


def test_whoever_waits_for_a_database_says_so_once_and_knows_how_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database, tries = database_of(tmp_path / "run"), list[int]()

    def count() -> list[object]:
        tries.append(1)
        if len(tries) == 4:
            back.__exit__(None, None, None)
        with database.reading() as connection:
            return list(connection.execute(select(nodes)))

    back = away(database)
    back.__enter__()
    assert database.patiently(count) == []
    assert len(tries) == 4
    assert caplog.text.count("doesn't answer") == 1
    assert database.seconds_away > 0.0, "no run's patience is spent by that"


def test_a_lease_that_cannot_be_renewed_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database, failures = database_of(tmp_path / "run"), list[object]()
    event.listen(database.engine, "handle_error", failures.append)
    lease = Lease(database, seconds=0.2)
    assert lease.take()
    with lease.kept(), away(database, "leases"):
        wait_until(lambda: len(failures) > 3)
    assert caplog.text.count("doesn't answer") == 1


def test_a_worker_goes_on_after_all_connections_to_its_database_were_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It looked for work no more, and was healthy."""
    with Running(tmp_path) as running:
        number, key = running.admitted()
        database, taken = running.home.database, contextlib.ExitStack()
        assert isinstance(database.engine.pool, QueuePool)
        database.engine.pool._timeout = 0.05
        with taken:
            with contextlib.suppress(NoConnection):
                while True:
                    taken.enter_context(database.engine.connect())
            wait_until(lambda: "trying on" in caplog.text)
            assert running.raw("GET", "/healthz")[0] == 503
        wait_until(lambda: running.raw("GET", "/healthz")[0] == 200)
        poll = threading.Thread(target=lambda: running.call(key, "GET", "/v1/work?wait=20"))
        poll.start()
        wait_until(lambda: number in present_nodes(database))
        running.call(key, "DELETE", "/v1/work")
        poll.join()


def test_a_worker_whose_database_takes_nothing_is_not_healthy(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        with away(running.home.database, "workers"):
            wait_until(lambda: running.raw("GET", "/healthz")[0] == 503)
        wait_until(lambda: running.raw("GET", "/healthz")[0] == 200)


def test_a_server_is_up_where_it_listens_whatever_names_its_certificate_has(tmp_path: Path) -> None:
    with Running(tmp_path, host="127.0.0.2") as running:
        assert running.home.is_up()


def test_a_run_behind_another_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrecplus.deploy.operate.runs._SOON", 0.0)
    prepared(tmp_path, small_ratings(), small_config(), nodes=1)
    first = stored(tmp_path / "run")
    second = server.begin(
        first.database, tmp_path / "second", first.config(), Deployment(1), first.catalogue, {"dataset": "small"}
    )
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        second.stop()

    lease = Lease(first.database, 1e6)
    assert lease.take()
    with pytest.raises(UserError, match="stopped"):
        run_to_the_end(second, tmp_path / "second", lambda *_: None, say)
    assert "run 1 is first" in said[0]


def test_a_node_waits_for_a_new_certificate_where_its_server_s_has_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes ended, and stayed away when the operator had renewed it."""
    monkeypatch.setattr(certificates, "_SERVER_DAYS", 0)
    with Running(tmp_path) as running:
        assert running.home.is_up()
        findings = {finding.what: finding.good for finding in look_over(running.home)}
        assert findings["the certificate has expired: no node connects"] is False
        with pytest.raises(NoAnswer, match="expired"):
            running.call(running.admitted()[1], "GET", "/v1/status")


def test_a_certificate_for_another_name_is_told_from_one_of_another_authority(tmp_path: Path) -> None:
    with Running(tmp_path, host="127.0.0.2") as running:
        connection = ServerConnection("127.0.0.2", running.home.port, trust(running.ca))
        with pytest.raises(UserError, match=r"is not for 127\.0\.0\.2"):
            connection.call("GET", "/healthz")


def test_two_processes_with_one_key_are_told(tmp_path: Path) -> None:
    """A copied home took every other question, without a word."""
    with Running(tmp_path) as running:
        number, key = running.admitted()
        said: list[str] = []

        def poll() -> None:
            try:
                running.call(key, "GET", "/v1/work?wait=50")
            except Rejected as refused:
                said.append(str(refused))

        first = threading.Thread(target=poll)
        first.start()
        wait_until(lambda: number in present_nodes(running.home.database))
        running.call(key, "GET", "/v1/work?wait=0")
        first.join()
        assert "another process asks with this node's key" in said[0]


def test_whoever_joins_in_a_crowd_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred devices behind one address got "too many tries", and had to be told to come back."""
    monkeypatch.setattr("fedrecplus.deploy.node.connection._PAUSE", 0.2)
    with Running(tmp_path / "server") as running:
        link = running.home.invite("anna", 1.0)
        while running.raw("POST", "/v1/join")[0] != 429:
            pass
        (tmp_path / "anna").mkdir()
        NodeHome(tmp_path / "anna").make_key()
        assert join_by(link, tmp_path / "anna", "")[1] == "anna"


def test_a_worker_that_ends_sends_its_devices_away_without_a_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    got: list[bytes] = []
    with Running(tmp_path) as running:
        number, key = running.admitted()
        poll = threading.Thread(target=lambda: got.append(running.call(key, "GET", "/v1/work?wait=50")))
        poll.start()
        wait_until(lambda: number in present_nodes(running.home.database))
    poll.join()
    assert got == [b""]
    assert "Traceback" not in capfd.readouterr().err
