"""Joining by a link, and keeping a server: invitations, metrics, checks, backups, certificates."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import ssl
import stat
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from fedrecplus.deploy.flower.enrolment import Enrolment, Invitations
from fedrecplus.deploy.flower.metrics import render
from fedrecplus.deploy.flower.respond import Unserved
from fedrecplus.deploy.flower.roster import Roster
from fedrecplus.deploy.process import CA, Invitation, NodeHome, ServerHome, last_run, look_over, note_run, upkeep
from fedrecplus.deploy.process.certificates import make_server_certificates, names_of
from fedrecplus.deploy.process.private_files import write_private
from fedrecplus.deploy.process.processes import server_port
from fedrecplus.deploy.process.upkeep import back_up, restore
from hypothesis import given
from hypothesis import strategies as st

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.server import figures_of, journal_of
from fedrecplus.errors import UserError
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.deploy.test_gate import Key, Running
from tests.small_data import small_ratings


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("joining") / "home")
    try:
        yield running
    finally:
        running.process.end(2.0)


def lines_of(text: str) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }


def test_a_link_lets_one_device_in_and_brings_all_it_needs(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "trained"
    serve(InProcessLink(prepared(folder, small_ratings(), small_config(rounds=1), nodes=1)), folder / "run")
    server.home.registry.publish(folder / "run")
    home = str(server.home.path)
    assert exit_code_of(["server", "invite", "--name", "anna", "--address", "localhost:9", "--home", home]) == 0
    assert "fedrecplus join 'fedrecplus://localhost:9/join?code=" in capsys.readouterr().out
    link = server.home.invite("anna", 1.0)
    (tmp_path / "mine.csv").write_text("item,rating\n3,5\n7,1\n")
    device = ["--leave", "--home", str(tmp_path / "device")]
    assert exit_code_of(["join", str(link), "--ratings", str(tmp_path / "mine.csv"), *device]) == 0
    with Store.open(tmp_path / "device" / "store.db") as store:
        assert sum(len(own) for own in store.ratings().values()) == 2
    assert (tmp_path / "device" / "ca.crt").read_bytes() == (server.home.certificates / CA).read_bytes()
    names = {node["name"] for node in server.home.nodes()}
    assert "anna" in names
    assert exit_code_of(["device", "recommend", "--model", str(tmp_path / "device" / "model"), *device[1:]]) == 0
    number = next(node["node-id"] for node in server.home.nodes() if node["name"] == "anna")
    capsys.readouterr()
    assert exit_code_of(["join", str(link), *device]) == 0, "whose answer was lost asks again"
    told = capsys.readouterr().out
    assert f"you are node {number}, anna" in told
    assert "A server that invents the other people" in told, "said where people join"


def test_ratings_that_are_not_on_the_scale_leave_no_store_and_a_scale_is_heeded(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, file = tmp_path / "anna", tmp_path / "anna.csv"
    file.write_text("7,3.5\n8,4\n")
    join = ["join", str(server.home.invite("anna", 1.0)), "--home", str(home), "--ratings", str(file), "--leave"]
    assert exit_code_of(join) == 2
    assert not (home / "store.db").exists()
    assert exit_code_of(["device", "init", "--home", str(home)]) == 0
    assert exit_code_of([*join, "--scale", "0.5:5:0.5"]) == 0
    assert f"--home {home}" in capsys.readouterr().out
    with Store.open(home / "store.db") as store:
        assert str(store.scale) == "0.5:5:0.5"


def test_a_link_of_another_server_is_found_out_before_the_code_leaves(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = server.home.invite("", 1.0)
    other = Invitation(link.host, link.port, link.code, "00" * 32)
    device = ["--leave", "--home", str(tmp_path / "device")]
    assert exit_code_of(["join", str(other), *device]) == 2
    assert not (tmp_path / "device" / "ca.crt").exists()
    time.sleep(1.0)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{link}\n"))
    assert exit_code_of(["join", "-", *device]) == 0, "the code is still good, and in no command line"


def test_codes_expire_work_once_and_stand_nowhere(tmp_path: Path) -> None:
    invitations = Invitations(tmp_path)
    code, late = invitations.make("anna", 60.0), invitations.make("late", -1.0)
    assert code not in (tmp_path / "invitations.json").read_text()
    assert stat.S_IMODE((tmp_path / "invitations.json").stat().st_mode) == 0o600
    assert [invitations.claim(one, b"key") for one in (late, "guessed")] == [None, None]
    assert invitations.claim(code, b"key") == ("anna", False)
    assert Invitations(tmp_path).claim(code, b"another") is None, "also after a restart"


def test_a_crash_before_a_node_is_admitted_loses_no_invitation(tmp_path: Path) -> None:
    state = MagicMock()
    state.query.return_value = []
    invitations, facts = Invitations(tmp_path), {"key": Key(tmp_path / "n").public.read_text()}
    code = invitations.make("anna", 60.0)
    body = json.dumps({"code": code, **facts}).encode()
    broken = MagicMock()
    broken.admit.side_effect = OSError("killed")
    with pytest.raises(OSError, match="killed"):
        Enrolment(tmp_path, broken, invitations, None)._enrol(body)
    again = Enrolment(tmp_path, Roster(tmp_path, state), Invitations(tmp_path), None)
    first = again._enrol(body)
    assert first["name"] == "anna"
    assert again._enrol(body) == first, "an answer that was lost is given again"
    assert len(Roster(tmp_path, state).all()) == 1
    other = json.dumps({"code": code, "key": Key(tmp_path / "m").public.read_text()}).encode()
    with pytest.raises(Unserved, match="was used"):
        again._enrol(other)
    again._roster.expel(int(first["node-id"]))
    with pytest.raises(Unserved, match="was used"):  # who is expelled comes back by no old link
        again._enrol(body)


def test_strangers_with_wrong_codes_keep_nobody_out_who_has_a_right_one(tmp_path: Path) -> None:
    state = MagicMock()
    state.query.return_value = []
    enrolment = Enrolment(tmp_path, Roster(tmp_path, state), Invitations(tmp_path), None)
    key = Key(tmp_path / "n").public.read_text()
    said = []
    for number in range(120):
        with pytest.raises(Unserved) as refused:
            enrolment._enrol(json.dumps({"code": f"guess {number}", "key": key}).encode())
        said.append(refused.value.status)
    assert (said[0], said[-1]) == (403, 429)
    code = Invitations(tmp_path).make("anna", 60.0)
    assert enrolment._enrol(json.dumps({"code": code, "key": key}).encode())["name"] == "anna"


def test_nobody_tries_many_codes(tmp_path: Path) -> None:
    running = Running(tmp_path / "home")
    try:
        body = json.dumps({"code": "guess", "key": Key(tmp_path).public.read_text()}).encode()
        said = [running.post("/v1/join/enrol", body)[0] for _ in range(15)]
    finally:
        running.process.end(2.0)
    assert said[0] == 403
    assert said[-1] == 429


def test_many_who_join_at_once_are_all_on_the_list(tmp_path: Path) -> None:
    state = MagicMock()
    state.query.return_value = []
    roster = Roster(tmp_path, state)
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda number: roster.admit(f"key {number}".encode(), f"n{number}"), range(100)))
    assert len({number for number, new in said if new}) == 100
    assert len(Roster(tmp_path, state).all()) == 100


def test_a_full_disk_admits_and_expels_nobody_and_it_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roster = Roster(tmp_path, MagicMock())
    number, _ = roster.admit(b"first")

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as disk:
        disk.setattr("fedrecplus.deploy.flower.roster.write_private", full)
        for change in (lambda: roster.admit(b"second"), lambda: roster.expel(number)):
            with pytest.raises(OSError, match="no space"):
                change()
    assert roster.number_of(b"second") is None
    second, is_new = roster.admit(b"second")
    assert is_new
    assert roster.number_of(b"second") == second
    roster.expel(number)
    again = Roster(tmp_path, MagicMock())
    assert (again.number_of(b"first"), again.number_of(b"second")) == (None, second)


def test_what_a_kill_left_beside_a_deleted_database_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "superlink.db-wal").write_bytes(b"messages")
    Roster(tmp_path, MagicMock())
    assert not list(tmp_path.glob("superlink.db*"))


def test_a_backup_of_a_home_whose_nodes_stand_in_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "superlink.db").write_bytes(b"")
    with pytest.raises(UserError, match=r"who was admitted(.|\n)*server up"):
        back_up(tmp_path, tmp_path / "copy.tar.gz")


@pytest.mark.parametrize("body", [b"[" * 4000, b"[]", b'{"code": "\\ud800", "key": "x"}', b"{}", b"\xff"])
def test_what_is_no_enrolment_is_malformed(tmp_path: Path, body: bytes) -> None:
    enrolment = Enrolment(tmp_path, MagicMock(), Invitations(tmp_path), None)
    with pytest.raises(Unserved, match="malformed"):
        enrolment._enrol(body)


def test_a_code_without_an_encoding_is_malformed(tmp_path: Path) -> None:
    facts = {"code": "\ud800", "key": Key(tmp_path).public.read_text()}
    enrolment = Enrolment(tmp_path, MagicMock(), Invitations(tmp_path), None)
    with pytest.raises(Unserved, match="malformed"):
        enrolment._enrol(json.dumps(facts).encode())


def test_the_model_is_fetched_a_few_times_and_not_without_end(server: Running, tmp_path: Path) -> None:
    key = Key(tmp_path)
    server.home.admit(key.public)
    tls = ssl.create_default_context(cafile=str(server.home.certificates / CA))
    said = []
    for _ in range(15):
        connection = HTTPSConnection("127.0.0.1", server.home.port, timeout=30, context=tls)
        connection.request(
            "GET", "/v1/join/model", headers={name.replace("_", "-"): value for name, value in key.headers().items()}
        )
        said.append(connection.getresponse().status)
        connection.close()
    assert said[0] in (200, 404)
    assert said[-1] == 429


def test_a_secret_is_never_written_into_a_file_that_was_there(tmp_path: Path) -> None:
    there = tmp_path / f".secret.{os.getpid()}.part"
    there.touch(0o666)
    with there.open("rb") as watching:
        write_private(tmp_path / "secret", b"hidden")
        assert watching.read() == b""
    assert (tmp_path / "secret").read_bytes() == b"hidden"
    there.symlink_to(tmp_path / "elsewhere")
    write_private(tmp_path / "secret", b"again")
    assert not (tmp_path / "elsewhere").exists()


def test_a_home_is_its_owners_before_anything_is_restored_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "nodes.json").write_text("[]")
    back_up(tmp_path / "old", tmp_path / "copy.tar.gz")
    (tmp_path / "new").mkdir(mode=0o755)
    seen: list[int] = []

    def watched(path: Path, content: bytes) -> None:
        seen.append(stat.S_IMODE((tmp_path / "new").stat().st_mode))
        write_private(path, content)

    monkeypatch.setattr(upkeep, "write_private", watched)
    restore(tmp_path / "copy.tar.gz", tmp_path / "new")
    assert seen == [0o700]
    assert (tmp_path / "new" / "nodes.json").read_text() == "[]"


def test_a_backup_that_would_write_outside_of_the_home_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("certificates/../../elsewhere"))
    with pytest.raises(UserError, match="no part of a server's home"):
        restore(tmp_path / "bad.tar.gz", tmp_path / "new")
    assert not (tmp_path / "elsewhere").exists()


def test_a_backup_that_is_cut_off_leaves_no_home(tmp_path: Path) -> None:
    (tmp_path / "old" / "certificates").mkdir(parents=True)
    (tmp_path / "old" / "nodes.json").write_text("[]")
    (tmp_path / "old" / "certificates" / "ca.key").write_bytes(os.urandom(100_000))
    back_up(tmp_path / "old", tmp_path / "whole.tar.gz")
    (tmp_path / "half.tar.gz").write_bytes((tmp_path / "whole.tar.gz").read_bytes()[:50_000])
    with pytest.raises(UserError, match="half"):
        restore(tmp_path / "half.tar.gz", tmp_path / "new")
    assert not (tmp_path / "new").exists()


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


def test_metrics_are_for_who_has_the_token(server: Running) -> None:
    tls = ssl.create_default_context(cafile=str(server.home.certificates / CA))
    address = f"https://127.0.0.1:{server.home.port}/metrics"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(address, context=tls, timeout=30)
    token = (server.home.path / "metrics.token").read_text()
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=tls, timeout=30) as reply:
        figures = lines_of(reply.read().decode())
    assert 820 < figures["fedrecplus_certificate_days"] < 826
    assert figures["fedrecplus_message_bytes"] == 0
    assert figures['fedrecplus_refused_requests_total{reason="no token"}'] >= 1


def test_a_runs_journal_becomes_metrics_and_a_check(tmp_path: Path) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config(rounds=2), nodes=2)
    serve(InProcessLink(homes), tmp_path / "run")
    figures = figures_of(tmp_path / "run")
    assert (figures.round, figures.cohort, figures.phase) == (2, 2, "finished")
    text = lines_of(render(tmp_path, {"online": 2}, figures))
    assert text["fedrecplus_round"] == 2
    assert text["fedrecplus_upload_bytes_total"] == sum(line["bytes_up"] for line in journal_of(tmp_path / "run"))
    assert text['fedrecplus_nodes{status="online"}'] == 2


def test_check_says_what_is_wrong_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ServerHome(tmp_path / "home", "127.0.0.1", server_port())
    home.prepare([])
    (home.path / "control.token").chmod(0o644)
    folder = tmp_path / "run"
    prepared(tmp_path, small_ratings(), small_config(), nodes=1)
    Journal(folder).set_progress(phase="failed", error="no room")
    note_run(home.path, folder)
    assert last_run(home.path) == folder
    wrong = {finding.what: finding.remedy for finding in look_over(home) if not finding.good}
    assert any("mode 644" in what and "chmod 600" in remedy for what, remedy in wrong.items())
    assert any("no room" in what for what in wrong)
    assert any("doesn't answer" in what for what in wrong)
    assert exit_code_of(["server", "check", "--home", str(home.path)]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_check_has_nothing_odd_to_say_of_a_fresh_server(tmp_path: Path) -> None:
    fresh = ServerHome(tmp_path / "home", "127.0.0.1", server_port())
    fresh.prepare([])
    found = look_over(fresh)
    assert not any("run" in one.what.split() for one in found)
    assert [one.what for one in found if not one.good] == ["the server doesn't answer"]
    prepared(tmp_path, small_ratings(), small_config(), nodes=1)
    serve(InProcessLink([NodeHome(tmp_path / "nodes" / "node0")]), tmp_path / "run")
    note_run(fresh.path, tmp_path / "run")
    said = [one.what for one in look_over(fresh)]
    assert f"{tmp_path / 'run'}: round 3, finished" in said
    assert not any("signs of life" in what for what in said), "a run that is over gives none"


def test_a_server_without_nodes_is_not_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh = ServerHome(tmp_path / "home", "127.0.0.1", server_port())
    fresh.prepare([])
    monkeypatch.setattr(ServerHome, "is_up", lambda _: True)
    monkeypatch.setattr(ServerHome, "nodes", lambda _: [])
    assert all(one.good for one in look_over(fresh))
    monkeypatch.setattr(ServerHome, "nodes", lambda _: [{"status": "offline"}])
    assert [one.what for one in look_over(fresh) if not one.good] == ["0 of 1 admitted nodes are here"]


def test_a_restored_server_is_who_it_was(server: Running, tmp_path: Path) -> None:
    number, _ = server.home.admit(Key(tmp_path).public, "ben")
    saved = tmp_path / "server.tar.gz"
    assert exit_code_of(["server", "backup", str(saved), "--home", str(server.home.path)]) == 0
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert exit_code_of(["server", "restore", str(saved), "--home", str(server.home.path)]) == 2, "not over another"
    home = tmp_path / "new"
    assert exit_code_of(["server", "restore", str(saved), "--home", str(home)]) == 0
    for name in ("nodes.json", f"certificates/{CA}", "certificates/ca.key"):
        assert (home / name).read_bytes() == (server.home.path / name).read_bytes()
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
    assert str(number) in (home / "nodes.json").read_text()


def test_a_second_server_in_one_home_is_refused(tmp_path: Path) -> None:
    home = ServerHome(tmp_path / "home")
    home.path.mkdir()
    with home.only_one(), pytest.raises(UserError, match="another process"), home.only_one():
        pass


def test_certificates_are_renewed_and_rotated(tmp_path: Path) -> None:
    home = ServerHome(tmp_path / "home", "127.0.0.1", server_port())
    home.prepare(["fed.example.org"])
    authority = (home.certificates / CA).read_bytes()
    assert exit_code_of(["server", "renew", "--name", "new.example.org", "--home", str(home.path)]) == 0
    assert {"fed.example.org", "new.example.org", "localhost"} <= set(names_of(home.certificates))
    assert (home.certificates / CA).read_bytes() == authority
    home.prepare(["new.example.org"])
    assert exit_code_of(["server", "renew", "--authority", "--home", str(home.path)]) == 0
    assert (home.certificates / CA).read_bytes() != authority
    assert "fed.example.org" in names_of(home.certificates)
    shutil.rmtree(home.certificates)
    make_server_certificates(home.certificates, [])
    assert NodeHome(tmp_path / "n").make_key().exists()


def test_the_log_is_lines_of_json_without_colours(server: Running) -> None:
    lines = (server.home.path / "server.log").read_text().splitlines()
    assert lines
    for line in lines:
        record = json.loads(line)
        assert record["at"].startswith("20")
        assert "\x1b" not in record["message"]
