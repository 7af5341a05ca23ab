"""Homes and runs of earlier versions, as those versions wrote them (``earlier/README.md``), under this one."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from fedrecplus.deploy.flower.roster import Roster
from fedrecplus.deploy.process import CA, MODELS, NodeHome, ServerHome
from fedrecplus.deploy.process import home_layout as server_layout
from fedrecplus.deploy.process.certificates import renew

from fedrecplus import __version__
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import load_config
from fedrecplus.deploy.device import Store, own_key, recommend
from fedrecplus.deploy.device.layout import LAYOUT
from fedrecplus.deploy.node import NODE_KEY, Key
from fedrecplus.deploy.server import Deployment, figures_of, journal_of
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import SharedModel
from fedrecplus.training.registry import Registry
from tests.deploy.in_process import InProcessLink, go_on, serve
from tests.deploy.test_gate import Running

EARLIER = Path(__file__).with_name("earlier")
ALL, READABLE = (1, 2, 3, 4), (2, 3, 4)
"""layouts of a store; models of the first, of fedrecplus 0.1, are read by 0.1 alone"""


@pytest.fixture
def unpacked(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with tarfile.open(EARLIER / f"layout{request.param}.tar.xz") as archive:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 has none
        archive.extractall(tmp_path / "old", **safely)
    for folder in ("device", "server"):
        (tmp_path / "old" / folder).chmod(0o700)
    return tmp_path / "old"


def content(path: Path) -> dict[str, Any]:
    """What a store holds, read without any code of ours."""
    with sqlite3.connect(path) as raw:
        found = {"layout": raw.execute("PRAGMA user_version").fetchone()[0]}
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            found[name] = raw.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
    raw.close()
    return found


@pytest.mark.parametrize(("unpacked", "layout"), [(n, n) for n in ALL], indirect=["unpacked"])
def test_a_store_keeps_ratings_persons_settings_log_and_key(unpacked: Path, layout: int) -> None:
    path = unpacked / "device" / "store.db"
    before = content(path)
    assert before["layout"] == layout
    with Store.open(path) as store:
        assert str(store.scale) == "1:5:1"
        assert recommend(store, 0, 3, unpacked / "run") if layout > 1 else True
    after = content(path)
    assert after["layout"] == LAYOUT
    assert len(before["ratings"]) == 21
    for table in ("ratings", "persons"):
        assert after[table] == before[table]
    assert [line[:12] for line in after["sent"]] == [line[:12] for line in before["sent"]]
    facts, kept = dict(after["facts"]), dict(before["facts"])
    led_back = kept.pop("secret") if layout < 3 else None
    assert kept.items() <= facts.items()
    assert facts["made_by"] == __version__
    assert facts["secret"] != led_back, "numbers of earlier uploads gave the secret away"
    Key(unpacked / "device" / NODE_KEY)
    with Store.open(path) as store:
        own_key(store)
        store.rate({"i0": 3.0})
        assert len(store.ratings()[0]) == len([row for row in before["ratings"] if row[0] == 0]) + (
            "i0" not in [row[1] for row in before["ratings"] if row[0] == 0]
        )


@pytest.mark.parametrize("unpacked", READABLE, indirect=True)
def test_the_model_that_was_seen_is_kept_and_recommends(unpacked: Path) -> None:
    path = unpacked / "device" / "store.db"
    seen = [row[4] for row in content(path)["models"]]
    home = ["--home", str(unpacked / "device")]
    assert exit_code_of(["device", "status", *home]) == 0
    assert exit_code_of(["device", "recommend", "--person", "p0", *home]) == 0
    assert [row[4] for row in content(path)["models"]] == seen


@pytest.mark.parametrize("unpacked", READABLE, indirect=True)
def test_a_run_of_an_earlier_version_goes_on_with_the_devices_that_know_it(unpacked: Path) -> None:
    config = load_config(unpacked / "run" / "config.toml")
    catalogue = ItemCatalogue.read(unpacked / "run" / "items.safetensors")
    go_on(unpacked / "run", unpacked / "next", config, Deployment(1), catalogue, overwrite=False)
    with Store.open(unpacked / "device" / "store.db") as store:
        settings = store.models()[0]["settings"]
    serve(InProcessLink([NodeHome(unpacked / "device")]), unpacked / "next")
    lines = journal_of(unpacked / "next")
    assert [line["round"] for line in lines] == [3, 4]
    assert [line["lost"] for line in lines] == [{}, {}], "no refusal"
    assert [line["uploads"] for line in lines] == [3, 3]
    with Store.open(unpacked / "device" / "store.db") as store:
        assert [(one["round"], one["settings"]) for one in store.models()] == [(3, settings)]


@pytest.mark.parametrize("unpacked", ALL, indirect=True)
def test_a_journal_of_an_earlier_version_becomes_figures(unpacked: Path) -> None:
    figures = figures_of(unpacked / "run")
    assert (figures.round, figures.uploads, figures.cohort) == (2, 12, 2)
    assert Deployment.read(unpacked / "run").model


@pytest.mark.parametrize("unpacked", [1], indirect=True)
def test_what_only_0_1_reads_is_said_in_words(unpacked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"before 0\.2"):
        load_config(unpacked / "run" / "config.toml")
    with pytest.raises(UserError, match=r"read it with fedrecplus 0\.1"):
        SharedModel.read(unpacked / "run")
    assert exit_code_of(["device", "recommend", "--person", "p0", "--home", str(unpacked / "device")]) == 2
    assert "no model yet that this version reads" in capsys.readouterr().err


KILLED = """
import os, sys
from pathlib import Path
from fedrecplus.deploy.device import Store, layout
number = int(sys.argv[2])
def killed(store, step=layout.STEPS[number]):
    step(store)
    os.kill(os.getpid(), 9)
layout.STEPS = (*layout.STEPS[:number], killed, *layout.STEPS[number + 1:])
with Store.open(Path(sys.argv[1])):
    pass
"""


@pytest.mark.parametrize(("unpacked", "step"), [(1, 0), (1, 3), (2, 1), (4, 3)], indirect=["unpacked"])
def test_a_kill_in_the_middle_leaves_the_old_store_whole(unpacked: Path, step: int) -> None:
    path = unpacked / "device" / "store.db"
    before = content(path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(step)], check=False)
    assert killed.returncode == -9
    assert content(path) == before
    with Store.open(path) as store:
        assert sum(map(len, store.ratings().values())) == 21


@pytest.mark.parametrize("unpacked", [2], indirect=True)
def test_a_full_disk_leaves_the_old_store_whole(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked / "device" / "store.db"
    before = content(path)

    def full(store: sqlite3.Connection) -> None:
        store.execute("DROP TABLE ratings")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("fedrecplus.deploy.device.layout.STEPS", (full, full, full, full))
    with pytest.raises(UserError, match="nothing that was stored is lost"), Store.open(path):
        pass
    assert content(path) == before


@pytest.mark.parametrize("unpacked", [1], indirect=True)
def test_two_who_open_an_old_store_at_once_both_find_it_new(unpacked: Path) -> None:
    def look(_: int) -> int:
        with Store.open(unpacked / "device" / "store.db") as store:
            return sum(map(len, store.ratings().values()))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(look, range(8))) == [21] * 8


def test_a_store_of_a_later_version_is_refused_with_the_remedy_and_left_alone(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path / "me")]
    assert exit_code_of(["device", "init", *home]) == 0
    path = tmp_path / "me" / "store.db"
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE facts SET value = '9.9' WHERE name = 'made_by'")
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = content(path)
    with pytest.raises(UserError, match=r"made by fedrecplus 9\.9(.|\n)*upgrade fedrecplus"), Store.open(path):
        pass
    assert content(path) == before
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 0")
    raw.close()
    with pytest.raises(UserError, match="no store of fedrecplus"), Store.open(path):
        pass


@pytest.mark.parametrize("unpacked", ALL, indirect=True)
def test_a_servers_home_keeps_keys_settings_and_the_model(unpacked: Path) -> None:
    home = unpacked / "server"
    secrets = {path: path.read_bytes() for path in home.rglob("*") if path.suffix in (".crt", ".key", ".token")}
    offered = (home / "model" / "model.safetensors").read_bytes() if (home / "model").exists() else None
    server = ServerHome.load(home)
    server.prepare([])
    assert json.loads((home / "server.json").read_text())["layout"] == server_layout.LAYOUT
    assert ServerHome.load(home) == server
    assert {path: path.read_bytes() for path in secrets} == secrets
    assert (offered is not None) == server.registry.begun
    if offered is not None:
        assert (server.registry.current().folder / "model.safetensors").read_bytes() == offered
        assert not (home / "model").exists()


@pytest.mark.parametrize("unpacked", [4], indirect=True)
def test_a_home_whose_step_was_killed_takes_it_again(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, rmtree = unpacked / "server", shutil.rmtree

    def killed(path: Any, *more: Any, **options: Any) -> None:
        if Path(path).name == "model":
            raise KeyboardInterrupt
        rmtree(path, *more, **options)

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        ServerHome.load(home).prepare([])
    monkeypatch.undo()
    assert (home / "model" / "model.safetensors").exists()
    ServerHome.load(home).prepare([])
    assert [one.number for one in Registry(home / MODELS).models()] == [1]
    assert not (home / "model").exists()


@pytest.mark.parametrize("unpacked", [4], indirect=True)
def test_homes_and_runs_of_a_later_version_are_refused_with_the_remedy(unpacked: Path) -> None:
    for path in (unpacked / "server" / "server.json", unpacked / "run" / "deployment.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "layout": 99, "mood": "new"}))
    with pytest.raises(UserError, match=r"layout 99(.|\n)*upgrade fedrecplus"):
        ServerHome.load(unpacked / "server")
    with pytest.raises(UserError, match=r"layout 99(.|\n)*upgrade fedrecplus"):
        ServerHome(unpacked / "server").prepare([])
    assert (unpacked / "server" / "model").exists(), "it is left alone"
    with pytest.raises(UserError, match=r"layout 99(.|\n)*upgrade fedrecplus"):
        Deployment.read(unpacked / "run")


@pytest.mark.parametrize("unpacked", [1], indirect=True)
def test_a_database_that_cannot_be_read_is_set_aside_and_not_deleted(
    unpacked: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = unpacked / "server" / "superlink.db"
    content = database.read_bytes()[:5000]
    database.write_bytes(content)
    state = MagicMock()
    assert Roster(unpacked / "server", state).all() == []
    assert (unpacked / "server" / "superlink.db.damaged").read_bytes() == content
    assert "admit all nodes again" in caplog.text


@pytest.mark.parametrize("unpacked", [1, 4], indirect=True)
def test_an_upgraded_server_lets_in_an_upgraded_node_by_its_old_key(unpacked: Path) -> None:
    nodes = set(journal_of(unpacked / "run")[0]["nodes"])
    renew(unpacked / "server" / "certificates", [])  # that of the archive lasts 825 days
    running = Running(unpacked / "server")
    try:
        assert {node["node-id"] for node in running.home.nodes()} == nodes, "everybody is who they were"
        assert not list((unpacked / "server").glob("superlink.db*")), "no upload is left of it"
        address, ca = f"127.0.0.1:{running.home.port}", str(running.home.certificates / CA)
        once = ["node", "once", address, "--ca", ca, "--wait", "0", "--back-in", "60"]
        assert exit_code_of([*once, "--home", str(unpacked / "device")]) == 0
        assert [node["status"] for node in running.home.nodes()].count("online") == 1
    finally:
        running.process.end(2.0)
