"""The commands of docs/deploy.md, one after the other, as on three machines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.processes import server_port
from fedrecplus.deploy.server import StoredRun, run_of
from fedrecplus.training.run_folder import RunFolder
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow


def call(*arguments: str) -> str:
    command = [sys.executable, "-m", "fedrecplus", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def staying(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that stays until it is told to stop, and then ends with all its helpers."""
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "fedrecplus", *arguments], stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(GIVE_UP) == 130, log.read_text()


def test_from_nothing_to_a_trained_model(tmp_path: Path) -> None:
    home, port = str(tmp_path / "server"), server_port()
    (tmp_path / "anna.csv").write_text("item,rating\n3,5\n7,1\n9,4\n11,2\n")
    people = [
        f"{person},{item},{1 + (person * item) % 5}" for person in range(6) for item in range(3, 30, 1 + person % 3)
    ]
    (tmp_path / "shop.csv").write_text("user,item,rating\n" + "\n".join(people) + "\n")
    anna, shop = ["--home", str(tmp_path / "anna")], ["--home", str(tmp_path / "shop")]
    for node in (anna, shop):
        call("device", "init", *node)
        assert "ssh-ed25519" in call("node", "key", *node)
    call("device", "import", str(tmp_path / "anna.csv"), *anna)
    call("device", "import", "--silo", str(tmp_path / "shop.csv"), *shop)
    items = tmp_path / "items.safetensors"
    call("deploy", "items", "synthetic:clients=60,items=40,ratings_per_client=10", "--out", str(items))
    address, ca = f"127.0.0.1:{port}", str(tmp_path / "server" / "certificates" / "ca.crt")
    with staying(tmp_path / "server.log", "server", "up", "--port", str(port), "--home", home):
        end = time.monotonic() + GIVE_UP
        while not (tmp_path / "server" / "server.json").exists() or not ServerHome.load(tmp_path / "server").is_up():
            assert time.monotonic() < end, (tmp_path / "server.log").read_text()
            time.sleep(0.2)
        keys = [str(tmp_path / name / "node.pub") for name in ("anna", "shop")]
        assert call("server", "admit", *keys, "--home", home).count("admitted as node") == 2
        assert call("server", "admit", keys[0], "--home", home).count("admitted before") == 1
        with (
            staying(
                tmp_path / "anna.log",
                "node",
                "join",
                address,
                "--ca",
                ca,
                "--allow-clear",
                "--allow-any-task",
                "--poll",
                "0.2",
                *anna,
            ),
            staying(
                tmp_path / "shop.log",
                "node",
                "join",
                address,
                "--ca",
                ca,
                "--allow-clear",
                "--allow-any-task",
                "--share-error",
                *shop,
            ),
        ):
            out = ["--home", home, "--out", str(tmp_path / "run")]
            how = ["--items", str(items), "--nodes", "2", "--rounds", "30", "--deadline", str(GIVE_UP)]
            with staying(tmp_path / "run.log", "deploy", "run", "--algorithm", "fedrec+private", *how, *out) as run:
                while not (tmp_path / "run" / "deployment.json").exists() or not _run(tmp_path).lines():
                    assert run.poll() is None, (tmp_path / "run.log").read_text()
                    time.sleep(0.1)
            assert _run(tmp_path).phase == "stopped", "who stops the command stops the training"
            assert not RunFolder(tmp_path / "run").finished
            said = call("deploy", "run", "--resume", *out)
    assert "round 30/30, clients 7, nodes 2" in said
    assert "loss" in said
    assert RunFolder(tmp_path / "run").finished
    assert len(call("device", "recommend", "-n", "3", *anna).strip().splitlines()) == 4
    assert re.search("3[0-9] messages", call("device", "status", *anna))
    call("device", "forget", "--yes", *anna)
    assert not (tmp_path / "anna" / "store.db").exists()


def _run(folder: Path) -> StoredRun:
    return run_of(ServerHome.load(folder / "server").database, folder / "run")


def test_deploy_local_does_it_all(tmp_path: Path) -> None:
    data = "synthetic:clients=60,items=40,ratings_per_client=10"
    how = ["--nodes", "3", "--rounds", "2", "--dataset", data, "--deadline", str(GIVE_UP)]
    said = call("deploy", "local", *how, "--out", str(tmp_path / "run"))
    assert "round 2/2, clients 60, nodes 3" in said
    assert RunFolder(tmp_path / "run").result()["fit"]["rmse"] < 3
    end = time.monotonic() + GIVE_UP
    while left := [folder.name for folder in Path("/proc").iterdir() if str(tmp_path) in _command_of(folder)]:
        assert time.monotonic() < end, f"{left} stay behind"  # what was killed takes a moment to be gone
        time.sleep(0.1)


def test_an_operators_day_goes_as_the_page_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    script = re.search(r"```sh\n(.*?)```", page, re.S)
    assert script is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "fedrecplus").write_text(f'#!/bin/sh\nexec {sys.executable} -m fedrecplus "$@"\n')
    (tmp_path / "bin" / "fedrecplus").chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", "set -e; trap 'kill $(jobs -p) 2> /dev/null' EXIT\n" + script[1]], cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "round 4/4, clients 2, nodes 2" in said, said
    assert re.search(r"ben +expelled", said)
    assert "model 1 (fedrec+private" in said, "the one before is current again"
    assert "is restored" in said
    assert "title" in done.stdout.splitlines()[-4], "and anna has her list"


def _command_of(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_text() if folder.name.isdigit() else ""
    except OSError:
        return ""
