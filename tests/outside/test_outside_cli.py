"""Rules from outside by the command line: trained, audited and described like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fedrecplus
from fedrecplus.config import loads
from tests.outside.my_rules import OPTIONS

SOURCE = Path(fedrecplus.__file__).parents[1]


KINDS = [name.removeprefix("my_") for name in OPTIONS]
CHOSEN = [f"{kind}.rule=my_rules.my_{kind}" for kind in KINDS]
CHOSEN += [f"{kind}.{OPTIONS[f'my_{kind}']}" for kind in KINDS] + ["server.rounds=2"]
CHOOSE = [word for each in CHOSEN for word in ("--set", each)]
DATA = ["--dataset", "synthetic:clients=30,items=40,ratings_per_client=8"]


def run(my_rules: Path, folder: Path, *words: str) -> str:
    """What a command of its own process prints."""
    environment = {**os.environ, "PYTHONPATH": f"{my_rules}{os.pathsep}{SOURCE}"}
    command = [sys.executable, "-m", "fedrecplus", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_kind_is_chosen_and_set_by_the_command_line(tmp_path: Path, my_rules: Path) -> None:
    """All of them in one training, since a process takes seconds to start."""
    run(my_rules, tmp_path, "train", "--algorithm", "fedrec", "--out", str(tmp_path / "run"), *DATA, *CHOOSE)
    config = loads((tmp_path / "run" / "config.toml").read_text())
    assert [getattr(config, kind).rule for kind in KINDS] == [f"my_rules.my_{kind}" for kind in KINDS]
    assert config.pseudo_items.settings.stride == 3
    assert json.loads((tmp_path / "run" / "result.json").read_text())["rmse"] > 0
