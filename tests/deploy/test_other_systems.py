"""A device's whole path without what Windows lacks, and as macOS calls itself, against a real server.

No machine of either kind is at hand: libraries are loaded as they are here, since they have code of their own for other
systems, and ours is then run without the modules and names of POSIX.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedrecplus
from fedrecplus.config import change
from fedrecplus.data import load
from fedrecplus.deploy.node import read_public_key
from fedrecplus.deploy.operate.certificates import CA
from tests.deploy.cluster import Cluster, exact
from tests.waiting import GIVE_UP

PRELUDE = """
import os, signal, sys, threading
import asyncio, concurrent.futures, ctypes, email, http.client, multiprocessing, sqlite3, ssl, subprocess, tempfile
import cryptography.hazmat.primitives.asymmetric.ec, cryptography.hazmat.primitives.asymmetric.ed25519
import cryptography.hazmat.primitives.serialization, cryptography.x509
import filelock, msgspec, numpy, rich.console, rich.live, rich.table, safetensors.numpy, tomli_w, typer
import concurrent.futures.process, http.server, multiprocessing.connection, multiprocessing.pool
import multiprocessing.shared_memory, multiprocessing.resource_tracker, shutil, tarfile, uuid, webbrowser, zipfile

import threadpoolctl
looked_up = threadpoolctl.ThreadpoolController()  # it asks the system for its libraries
threadpoolctl.ThreadpoolController = lambda: looked_up

system = sys.argv.pop(1)
POSIX = ("fcntl", "pwd", "grp", "resource", "termios", "syslog", "posix_ipc", "pty", "tty", "crypt", "nis", "spwd")
LACKING = (
    (os, ("fork", "forkpty", "killpg", "setsid", "getpgid", "getpgrp", "setpgid", "mkfifo", "getuid", "geteuid",
          "getgid", "chown", "fchmod", "fchown", "sched_getaffinity", "sched_setaffinity", "pread", "pwrite", "statvfs",
          "nice", "getloadavg", "sysconf", "WIFEXITED", "getgroups", "initgroups", "posix_fallocate", "O_NOFOLLOW")),
    (signal, ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT", "SIGCHLD", "alarm", "setitimer",
              "pthread_sigmask", "pthread_kill", "sigwait", "pause")),
)

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name in POSIX:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if system == "win32":
    sys.meta_path.insert(0, Refused())
    for name in POSIX:
        sys.modules.pop(name, None)
    for owner, names in LACKING:
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
sys.platform = system
from fedrecplus.cli.main import exit_code_of
"""

COMMANDS = (
    PRELUDE
    + """
from pathlib import Path
home, ratings, address, ca = sys.argv[1:5]
at = ["--home", home]

def done(*words, code=0):
    found = exit_code_of([*words, *at])
    assert found == code, (words, found)

done("device", "init")
done("device", "import", ratings)
done("device", "rate", "5", "4")
done("device", "rate", "5", "4.5", code=2)
done("device", "rate", "5", "--remove")
done("device", "policy", "--allow-bare", "--channel", "clear", "--allow-any-task")
done("node", "key")
print("READY", flush=True)
sys.stdin.readline()
done("node", "once", address, "--ca", ca, "--wait", "10", "--metrics", str(Path(home) / "node.prom"))
done("device", "status")
done("device", "recommend", "-n", "3")
done("device", "models")
done("device", "sent")
done("device", "forget", "--yes")
assert not Path(home).exists()
lacking = [name for name in POSIX if name in sys.modules] if system == "win32" else []
assert not lacking, lacking
print("DONE", flush=True)
"""
)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    config = change(exact(rounds=1), "precision", "float32")
    ratings = load("synthetic:clients=6,items=12,ratings_per_client=6")
    with Cluster(tmp_path_factory.mktemp("systems"), ratings, config, nodes=1) as running:
        yield running


@pytest.mark.parametrize("system", ["win32", pytest.param("darwin", marks=pytest.mark.slow)])
def test_a_device_lives_without_what_its_system_lacks(cluster: Cluster, tmp_path: Path, system: str) -> None:
    (tmp_path / "mine.csv").write_bytes(b"item,rating\r\n1,5\r\n2,1\r\n3,4\r\n4,3\r\n")
    arguments = [str(tmp_path / "me"), str(tmp_path / "mine.csv"), f"127.0.0.1:{cluster.server.port}"]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMANDS, system, *arguments, str(cluster.server.certificates / CA)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="cp1252",
        # Windows writes to files and pipes in a code page; what it lacks is replaced, as `fedrecplus` itself does
        env={
            **os.environ, "PYTHONPATH": str(Path(fedrecplus.__file__).parents[1]),
            "PYTHONIOENCODING": "cp1252:replace",
        },
    )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("READY"):
                break
        else:
            pytest.fail(process.communicate(timeout=GIVE_UP)[1])
        cluster.server.roster.admit(read_public_key(tmp_path / "me" / "node.pub"), system)
        cluster.start_run()
        said, wrong = process.communicate("\n", timeout=GIVE_UP)
        assert process.returncode == 0, said + wrong
        assert said.rstrip().endswith("DONE")
        assert "answered 1 messages" in said
        assert ("MB of memory" in said) == (system != "win32"), "Windows doesn't tell"
        cluster.finish()
    finally:
        process.kill()
        process.wait()
    assert [line["uploads"] for line in cluster.journal.lines()] == [1]


def test_letters_that_a_code_page_lacks_are_no_traceback(tmp_path: Path) -> None:
    at = ["--home", str(tmp_path / "me")]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(Path(fedrecplus.__file__).parents[1])}
    for words in (["device", "init"], ["device", "rate", "映画", "5"]):
        done = subprocess.run(
            [sys.executable, "-m", "fedrecplus", *words, *at], env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"rated ??: 5")
