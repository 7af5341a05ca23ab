"""The package runs where people are: without what Linux has and macOS or Windows have not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fedrecplus

WITHOUT = """
import os, signal, sys
for name in ("fcntl", "pwd", "grp", "resource", "termios", "syslog", "posix_ipc"):
    sys.modules[name] = None  # importing it is then an error
for owner, names in (
    (os, ("sched_getaffinity", "sched_setaffinity", "fork", "killpg", "setsid", "getpgid", "mkfifo")),
    (signal, ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT", "alarm", "pthread_sigmask")),
):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
import importlib, pkgutil
import fedrecplus as fr
for module in pkgutil.walk_packages(fr.__path__, "fedrecplus.", onerror=lambda name: None):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
training, test = fr.split(fr.load("synthetic:clients=30,items=40,ratings_per_client=8"), fold=0)
run = fr.train(training, test, fr.assign(fr.preset("fedrec+"), ["server.rounds=2"]), out=sys.argv[1])
again = fr.Recommender.load(sys.argv[1])
assert again.top_items(training.client_ids[0], 3) == run.recommender.top_items(training.client_ids[0], 3)
print("trained")
"""


def test_everything_is_imported_and_trains_without_what_is_of_linux(tmp_path: Path) -> None:
    """A deployment's server is made for Linux and macOS; for devices see
    ``deploy/test_other_systems.py``."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        # kernels as plain Python: a lock without fcntl would wait for the lock files that fcntl leaves in the cache
        env={**os.environ, "PYTHONPATH": str(Path(fedrecplus.__file__).parents[1]), "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("trained\n")
