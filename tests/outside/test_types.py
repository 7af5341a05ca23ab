"""mypy reads parts from outside: it passes on right ones, and finds a wrong signature and a method that is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outside.my_rules import FILES, write_all

ROOT = Path(__file__).parents[2]
WRONG = {
    "my_pseudo_items": ("count: Count, device: Device", "device: Device"),
    "my_virtual_ratings": ("-> Array:", "-> float:"),
    "my_encoder": ("public: PublicItems", "public: int"),
    "my_aggregation": ("delta: NDArray[np.float64], ", ""),
    "my_server_optimizer": ("def step(", "def steps("),
    "my_channel": ("broadcast: Broadcast) -> Upload", "settings: Settings) -> Upload"),
    "my_model": ("def fold_in(", "def fold("),
    "my_neural": ("leaves: Leaves", "leaves: Tensor"),
    "my_attack": ("client: int", "client: str"),
}
"""a signature that is wrong, or a method that is missing"""


@pytest.mark.slow
def test_mypy_passes_on_parts_from_outside_and_fails_on_wrong_copies(tmp_path: Path) -> None:
    home = write_all(tmp_path)
    for name, (old, new) in WRONG.items():
        assert old in FILES[name]
        (home / f"wrong_{name}.py").write_text(FILES[name].lstrip().replace(old, new), encoding="utf-8")
    shared = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", *shared, str(home)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(ROOT / "src")})
    wrong = set(re.findall(r"my_rules[/\\](\w+)\.py:\d+: error", done.stdout))
    assert wrong == {f"wrong_{name}" for name in FILES}, done.stdout + done.stderr
