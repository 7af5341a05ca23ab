"""Homes and runs of earlier versions, as those versions wrote them (``earlier/README.md``), under this one."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fedrecplus import __version__
from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, own_key, recommend
from fedrecplus.deploy.device.layout import LAYOUT
from fedrecplus.errors import UserError

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
    led_back = kept.pop("secret")
    assert kept.items() <= facts.items()
    assert facts["made_by"] == __version__
    assert int(facts["secret"]) > 2**128 > int(led_back), "64 bits can be searched"
    with Store.open(path) as store:
        own_key(store)
        store.rate({"i0": 3.0})
        assert len(store.ratings()[0]) == len([row for row in before["ratings"] if row[0] == 0]) + (
            "i0" not in [row[1] for row in before["ratings"] if row[0] == 0]
        )


KILLED = """
import os, sys
from pathlib import Path
from fedrecplus.deploy.device import Store, layout
def killed(store, renew=layout.renew):
    renew(store)
    os.kill(os.getpid(), 9)
layout.renew = killed
with Store.open(Path(sys.argv[1])):
    pass
"""


@pytest.mark.parametrize("unpacked", [1, 4], indirect=True)
def test_a_kill_in_the_middle_leaves_the_old_store_whole(unpacked: Path) -> None:
    path = unpacked / "device" / "store.db"
    before = content(path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
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

    monkeypatch.setattr("fedrecplus.deploy.device.layout.renew", full)
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
