"""Rules from outside by the command line: ``fedrecplus settings my_rules.mine`` is tested with that command."""

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


def test_every_kind_is_chosen_and_set_by_the_command_line(tmp_path: Path, my_rules: Path) -> None:
    """All of them in one training, since a process takes seconds to start."""
    kinds = [name.removeprefix("my_") for name in OPTIONS]
    settings = [f"{kind}.rule=my_rules.my_{kind}" for kind in kinds]
    settings += [f"{kind}.{OPTIONS[f'my_{kind}']}" for kind in kinds] + ["server.rounds=2"]
    done = subprocess.run(
        [
            sys.executable, "-m", "fedrecplus", "train", "--algorithm", "fedrec", "--out", str(tmp_path / "run"),
            "--dataset", "synthetic:clients=30,items=40,ratings_per_client=8",
            *(word for each in settings for word in ("--set", each)),
        ],
        capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{my_rules}{os.pathsep}{SOURCE}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    config = loads((tmp_path / "run" / "config.toml").read_text())
    assert [getattr(config, kind).rule for kind in kinds] == [f"my_rules.my_{kind}" for kind in kinds]
    assert config.pseudo_items.options.stride == 3
    assert json.loads((tmp_path / "run" / "result.json").read_text())["rmse"] > 0
