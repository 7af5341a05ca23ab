"""What an operator relies on: links, backups, certificates, checks; and what the database holds."""

from __future__ import annotations

import contextlib
import os
import ssl
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, strategies as st
from sqlalchemy import update

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.http.metrics import text_of
from fedrecplus.deploy.node import Invitation, ServerConnection, fetch_log, read_heads, trust
from fedrecplus.deploy.operate import upkeep
from fedrecplus.deploy.operate.certificates import CA, make_server_certificates, names_of
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import Child, server_port
from fedrecplus.deploy.operate.upkeep import back_up, look_over, restore
from fedrecplus.deploy.server import Database, Lease, LeaseLost, figures_of, journal_of
from fedrecplus.deploy.server.schema import leases, metadata, runs
from fedrecplus.deploy.server.stored_run import CoordinatedRun
from fedrecplus.errors import UserError
from fedrecplus.files import write_private
from tests.deploy.in_process import InProcessLink, database_of, prepared, serve, small_config, stored
from tests.deploy.running import Running
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP, wait_until


def a_home(path: Path) -> ServerHome:
    home = ServerHome(path, "127.0.0.1", server_port())
    home.prepare(["fed.example.org"])
    return home


def test_the_versions_of_the_schema_come_to_its_tables(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    database.upgrade()
    database.upgrade()
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_an_address_of_no_database_is_an_error_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    up = ["server", "up", "--port", str(server_port()), "--home", str(tmp_path / "home"), "--database"]
    assert exit_code_of([*up, "nonsense"]) == 2
    assert exit_code_of([*up, "postgresql+psycopg://me:secret-word@127.0.0.1:1/x"]) == 2
    said = capsys.readouterr().err
    assert "check the address" in said
    assert "secret-word" not in said
    assert exit_code_of(["server", "up", "--host", "0.0.0.0", "--insecure", "--home", str(tmp_path / "h")]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["server", "up", "--port", "99999"], "1<=x<=65535"),
        (["server", "up", "--host", "192.0.2.1"], "that this machine has"),
        (["server", "up", "--name", "fünf.example"], "no name of a machine"),
        (["server", "up", "--home", "FILE/x"], "FILE"),
        (["server", "restore", "COPY", "--home", "FILE/x"], "FILE is a file"),
        (["node", "key", "--home", "FILE/x"], "FILE is a file"),
        (["deploy", "run", "--out", "r", "--items", "FILE", "--algorithm", "fedrec"], "make a catalogue"),
        (["deploy", "witness", "127.0.0.1:1", "--task", "ab", "--insecure"], "doesn't answer"),
    ],
)
def test_wrong_settings_are_answered_in_words(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("no folder")
    home = a_home(tmp_path / "home")
    if "COPY" in words:
        back_up(home, Path("COPY"))
    place = [] if "--home" in words or words[1] == "witness" else ["--home", str(home.path)]
    port = ["--port", str(server_port())] if words[1] == "up" and "--port" not in words else []
    assert exit_code_of([*words, *place, *port]) == 2
    assert said in capsys.readouterr().err


def test_a_process_that_is_ended_while_it_starts_is_ended() -> None:
    """It was started once more after all had been told to end, and ended with the machine."""
    in_between = threading.Event()

    class Starting(Child):
        def start(self) -> None:
            in_between.set()
            time.sleep(0.2)
            super().start()

    child = Starting([sys.executable, "-c", "import time; time.sleep(600)"])
    keeper = threading.Thread(target=child.keep_alive, daemon=True)
    keeper.start()
    in_between.wait()
    child.end()
    keeper.join(GIVE_UP)
    assert not keeper.is_alive()
    assert child.process is not None
    assert child.process.poll() is not None


@pytest.mark.parametrize("name", ["a b", "", "x/y", "-:-"])
def test_names_that_no_machine_has_get_no_certificate(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no name of a machine"):
        make_server_certificates(tmp_path / "certificates", [name])
    assert not any((tmp_path / "certificates").iterdir())


def test_a_server_that_was_started_with_another_database_begins_no_empty_one(tmp_path: Path) -> None:
    home = ServerHome(tmp_path / "home", port=server_port(), address=f"sqlite:///{tmp_path}/elsewhere.db")
    home.prepare([])
    with pytest.raises(UserError, match=r"elsewhere\.db"):
        ServerHome(tmp_path / "home", port=home.port).prepare([])
    assert not (tmp_path / "home" / "server.db").exists()


def test_a_start_that_failed_or_came_second_leaves_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = a_home(tmp_path / "home")
    up = ["server", "up", "--home", str(home.path), "--port", str(server_port())]
    assert exit_code_of([*up, "--database", "postgresql+psycopg://me@127.0.0.1:1/x"]) == 2
    with home.in_use(), home.listening():
        assert exit_code_of([*up[:-1], str(home.port)]) == 2
    assert "works on the server in" in capsys.readouterr().err
    assert ServerHome.load(home.path) == home


@pytest.mark.parametrize(
    ("file", "content", "commands", "said"),
    [
        ("server.json", '{"port": "x"}', ["status", "nodes", "up"], "server.json is damaged"),
        ("server.db", None, ["nodes", "backup", "invite"], ""),
        ("server.db", "no database, but a text of some length" * 9, ["nodes", "backup", "invite"], "not a database"),
        ("certificates/ca.key", "no key", ["renew"], "put them back"),
        ("certificates/ca.crt", "no certificate", ["renew", "invite"], "back from a backup"),
        ("certificates/ca.crt", None, ["up"], "ca.crt is missing"),
    ],
)
def test_a_damaged_home_is_answered_in_words(
    file: str, content: str | None, commands: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = a_home(tmp_path / "home")
    home.database.close()
    for name in (file, "server.db-wal", "server.db-shm")[: 3 if file == "server.db" else 1]:
        (home.path / name).unlink(missing_ok=True)
    if content is not None:
        write_private(home.path / file, content.encode())
    for command in commands:
        words = {"backup": [str(tmp_path / "copy")], "up": ["--port", str(home.port)], "invite": ["--no-qr"]}
        capsys.readouterr()
        assert exit_code_of(["server", command, *words.get(command, []), "--home", str(home.path)]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
    if file.startswith("server.db"):
        assert not all(finding.good for finding in look_over(home))


def test_tables_of_a_later_version_are_refused(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    with home.database.changing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UserError, match="later fedrecplus"):
        home.prepare([])


def test_a_witness_is_told_in_words_what_a_server_has_not(tmp_path: Path) -> None:
    with Running(tmp_path / "home") as server:
        connection = ServerConnection("127.0.0.1", server.home.port, trust(server.ca))
        with pytest.raises(UserError, match="no such task"):
            fetch_log(connection, "ab" * 32)
    with pytest.raises(UserError, match="heads"):
        read_heads(tmp_path / "nowhere.jsonl")


def test_without_the_servers_packages_the_extra_is_named() -> None:
    script = "import sys; sys.modules['sqlalchemy'] = None; from fedrecplus.cli.main import exit_code_of; "
    for words in (["server", "status"], ["deploy", "local", "--dataset", "x", "--out", "x"]):
        command = [sys.executable, "-c", f"{script}sys.exit(exit_code_of({words}))"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert "fedrecplus[deploy]" in done.stderr


def test_one_holds_the_lease_and_an_earlier_holder_writes_nothing(tmp_path: Path) -> None:
    prepared(tmp_path, small_ratings(), small_config(), nodes=1)
    database, number = database_of(tmp_path / "run"), stored(tmp_path / "run").number
    first, second = Lease(database, 0.2), Lease(database, 60.0)
    assert first.take()
    assert not second.take()
    assert first.number == 1
    slept = CoordinatedRun(first, number)
    slept.set(progress='{"by": 1}')
    while not second.take():  # its time is up
        pass
    assert second.number == 2
    with pytest.raises(LeaseLost):
        slept.set(progress='{"by": "the one that slept"}')
    with pytest.raises(LeaseLost):
        slept.book.add({"release": "round 1"})
    assert slept.progress() == {"by": 1}
    assert slept.book.lines() == []
    CoordinatedRun(second, number).set(progress='{"by": 2}')
    assert slept.progress() == {"by": 2}


def test_a_lease_of_a_clock_that_was_ahead_is_over_when_nobody_renews_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    database.upgrade()
    killed, alive, other = Lease(database, 86_400.0), Lease(database, 0.2), Lease(database, 0.2)
    assert killed.take()
    wait_until(other.take)
    with database.changing() as connection:
        connection.execute(update(leases).values(until=0.0))
    assert alive.take()
    with alive.kept():
        ends = time.monotonic() + 1.0
        while time.monotonic() < ends:
            assert not other.take(), "it is renewed"
            time.sleep(0.02)


@pytest.mark.parametrize(
    "text", ["", "https://x:1/join?code=a&authority=b", "fedrecplus://x/join?code=a", "fedrecplus://x:99/"]
)
def test_what_is_no_link_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(UserError, match="no invitation"):
        Invitation.parse(text)


@given(st.text(max_size=200))
def test_any_text_is_a_link_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        assert Invitation.parse(text).port


def test_ratings_that_are_not_on_the_scale_leave_no_store(tmp_path: Path) -> None:
    (tmp_path / "anna.csv").write_text("7,3.5\n8,4\n")
    link = str(Invitation("127.0.0.1", 9, "code", "ab" * 32))
    join = ["join", link, "--home", str(tmp_path / "anna"), "--ratings", str(tmp_path / "anna.csv"), "--leave"]
    assert exit_code_of(join) == 2
    assert not (tmp_path / "anna" / "store.db").exists()
    assert exit_code_of([*join, "--scale", "0.5:5:0.5"]) == 2, "nobody answers there"
    with Store.open(tmp_path / "anna" / "store.db") as store:
        assert str(store.scale) == "0.5:5:0.5"


def test_a_restored_server_is_who_it_was(tmp_path: Path) -> None:
    home = a_home(tmp_path / "old")
    key = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    number, new = home.roster.admit(key, "ben")
    assert new
    saved = tmp_path / "server.tar.gz"
    assert exit_code_of(["server", "backup", str(saved), "--home", str(home.path)]) == 0
    assert exit_code_of(["server", "backup", str(saved), "--home", str(home.path)]) == 2, "not over another"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert exit_code_of(["server", "restore", str(saved), "--home", str(home.path)]) == 2
    assert exit_code_of(["server", "restore", str(saved), "--home", str(tmp_path / "new")]) == 0
    again = ServerHome.load(tmp_path / "new")
    for name in (f"certificates/{CA}", "certificates/ca.key", "metrics.token"):
        assert (again.path / name).read_bytes() == (home.path / name).read_bytes()
        assert stat.S_IMODE((again.path / name).stat().st_mode) == 0o600
    assert [(node["number"], node["name"]) for node in again.roster.everybody()] == [(number, "ben")]
    assert again.roster.admit(key) == (number, False)


def test_a_home_is_its_owners_before_anything_is_restored_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(a_home(tmp_path / "old"), tmp_path / "copy.tar.gz")
    (tmp_path / "new").mkdir(mode=0o755)
    seen, kills = set[int](), [KeyboardInterrupt()]

    def watched(path: Path, content: bytes) -> None:
        assert not any((tmp_path / "new").iterdir()), "all of it, or nothing"
        seen.add(stat.S_IMODE((tmp_path / ".new.part").stat().st_mode))
        write_private(path, content)
        if kills and path.name == "server.json":
            raise kills.pop()

    monkeypatch.setattr(upkeep, "write_private", watched)
    with pytest.raises(KeyboardInterrupt):
        restore(tmp_path / "copy.tar.gz", tmp_path / "new")
    assert not (tmp_path / ".new.part").exists(), "a full disk is none the fuller"
    restore(tmp_path / "copy.tar.gz", tmp_path / "new")
    assert seen == {0o700}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert not (tmp_path / ".new.part").exists()
    half = (tmp_path / "copy.tar.gz").read_bytes()[:2000]
    (tmp_path / "half.tar.gz").write_bytes(half)
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("certificates/../../elsewhere"))
    for name in ("half", "bad"):
        with pytest.raises(UserError):
            restore(tmp_path / f"{name}.tar.gz", tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_certificates_are_renewed_and_rotated(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    authority = (home.certificates / CA).read_bytes()
    assert exit_code_of(["server", "renew", "--name", "new.example.org", "--home", str(home.path)]) == 0
    assert {"fed.example.org", "new.example.org", "localhost"} <= set(names_of(home.certificates))
    assert (home.certificates / CA).read_bytes() == authority
    home.prepare(["new.example.org"])
    assert exit_code_of(["server", "renew", "--authority", "--home", str(home.path)]) == 0
    assert (home.certificates / CA).read_bytes() != authority
    assert "fed.example.org" in names_of(home.certificates)


def test_a_key_without_its_certificate_gets_a_new_one(tmp_path: Path) -> None:
    """What a kill between the two leaves: workers could not start with them."""
    home, other = a_home(tmp_path / "home"), a_home(tmp_path / "other")
    (home.certificates / "server.key").write_bytes((other.certificates / "server.key").read_bytes())
    authority = (home.certificates / CA).read_bytes()
    home.prepare([])
    ssl.create_default_context().load_cert_chain(home.certificates / "server.crt", home.certificates / "server.key")
    assert "fed.example.org" in names_of(home.certificates)
    assert (home.certificates / CA).read_bytes() == authority


def test_status_says_what_is_wrong_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = a_home(tmp_path / "home")
    capsys.readouterr()
    assert exit_code_of(["server", "status", "--home", str(home.path)]) == 1
    said = capsys.readouterr().out
    assert "the server doesn't answer" in said
    assert "nobody coordinates rounds" in said
    assert "server invite" in said
    prepared(tmp_path, small_ratings(), small_config(), nodes=1)
    other = ServerHome(tmp_path / "home2", "127.0.0.1", server_port(), address=database_of(tmp_path / "run").address)
    with other.database.changing() as connection:
        connection.execute(update(runs).values(phase="failed", progress='{"error": "no room"}'))
    other.prepare([])
    other.path.chmod(0o755)
    wrong = {finding.what: finding.remedy for finding in look_over(other) if not finding.good}
    assert any("no room" in what for what in wrong)
    assert any("chmod 700" in remedy for remedy in wrong.values())


def test_a_runs_journal_becomes_metrics(tmp_path: Path) -> None:
    serve(InProcessLink(prepared(tmp_path, small_ratings(), small_config(rounds=2), nodes=2)), tmp_path / "run")
    figures = figures_of(stored(tmp_path / "run"))
    text = text_of({"online": 2}, figures, Counter({"answers": 7, "refused.401": 3}), 12.0, coordinated=True)
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines["fedrecplus_round"]) == 2
    assert float(lines["fedrecplus_upload_bytes_total"]) == sum(
        line["bytes_up"] for line in journal_of(tmp_path / "run")
    )
    assert float(lines['fedrecplus_refused_requests_total{status="401"}']) == 3
    assert float(lines['fedrecplus_nodes{status="online"}']) == 2


@pytest.mark.slow
def test_another_user_of_the_machine_reads_nothing_of_a_server(tmp_path: Path) -> None:
    """Keys, tokens, the database with invitations: whoever is another user gets none of them."""
    home = a_home(tmp_path / "home")
    home.roster.invite("anna", 60.0)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    files = [file for file in home.path.rglob("*") if file.is_file()]
    assert {"server.db", "metrics.token", "ca.key", "server.key", "server.json"} <= {file.name for file in files}
    assert {stat.S_IMODE(file.stat().st_mode) & 0o077 for file in files if file.suffix != ".crt"} == {0}
    for file in files if os.geteuid() == 0 else []:  # nobody else can become another user
        done = subprocess.run(["runuser", "-u", "nobody", "--", "cat", str(file)], capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (1, b""), file
