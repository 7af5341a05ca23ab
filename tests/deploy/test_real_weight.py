"""What a device's node weighs, over real processes with TLS: one process, little memory, no port, next to no work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedrecplus.config import change
from fedrecplus.data import load
from fedrecplus.deploy.operate.certificates import CA
from tests.deploy.cluster import Cluster, exact

pytestmark = pytest.mark.slow

ROUNDS, IDLE = 10, 20.0
MEGABYTES, SHARE = 80, 0.005


def status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listening(pid: int) -> list[str]:
    """Addresses that a process takes connections on."""
    own = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6", "unix"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            inode, listens = (
                (fields[6], fields[5] == "01") if table == "unix" else (fields[9], fields[3] in ("0A", "07"))
            )
            if f"socket:[{inode}]" in own and listens:
                found.append(line)
    return found


def test_a_node_is_one_process_that_weighs_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratings = load("synthetic:clients=3,items=1700,ratings_per_client=100")  # as many items as MovieLens-100K has
    config = change(change(exact(rounds=ROUNDS), "model.factors", 48), "precision", "float32")
    with Cluster(tmp_path, ratings, config) as cluster:
        address, ca = f"127.0.0.1:{cluster.server.port}", str(cluster.server.certificates / CA)
        join = [sys.executable, "-m", "fedrecplus", "node", "join", address, "--ca", ca]
        command = [*join, "--home", str(cluster.homes[0].path)]
        for home in cluster.homes[1:]:
            cluster.start_node(home)
        with (tmp_path / "node.log").open("wb") as log:
            node = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            cluster.run()
            memory = status(node.pid, "VmHWM") / 1024
            before = processor_seconds(node.pid)
            time.sleep(IDLE)
            share = (processor_seconds(node.pid) - before) / IDLE
            assert listening(node.pid) == []
            assert Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text() == "", "no helper"
            second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        finally:
            node.terminate()
            assert node.wait(30) == 130, (tmp_path / "node.log").read_text()
    with capsys.disabled():
        print(f"\na node after {ROUNDS} rounds: {memory:.0f} MB at most, {100 * share:.2f} % of a core when idle")
    assert len(cluster.journal.lines()[-1]["nodes"]) == 3
    assert memory < MEGABYTES
    assert share <= SHARE
    assert second.returncode == 2, "one node for a home"
    assert "another process" in second.stderr
