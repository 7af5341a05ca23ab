"""Kernels are compiled whatever the state of the cache on disk, and give the same bits from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.fast import compiling

ROOT = Path(__file__).parents[2]
ONE_KERNEL = """
import json, warnings
warnings.simplefilter("error")
import numpy as np
from fedrecplus.fast.filling import user_average
means = np.zeros(2)
ends = np.array([0, 2])
user_average(np.array([0]), ends, np.array([0, 1]), np.array([1.0, 2.0]), ends, means)
print(json.dumps({"means": means.tolist(), "kept": sum(user_average.stats.cache_hits.values())}))
"""
SOME_ROUNDS = """
import hashlib, json
import numpy as np
from fedrecplus import data, fast, simulation
from fedrecplus.config import preset
ratings = data.load("synthetic:clients=60,items=80,ratings_per_client=20")
hashes = {}
for name in ORDER:
    problem = simulation.prepare(ratings, preset(name))
    state = simulation.start(problem, np.float32)
    for _ in range(3):
        state, _ = fast.simulate_round(problem, state)
    factors = fast.prediction_factors(problem, state)
    hashes[name] = hashlib.sha256(state.server.V.tobytes() + state.U.tobytes() + factors.tobytes()).hexdigest()
print(json.dumps(hashes))
"""


def run_with_cache(folder: Path, code: str = ONE_KERNEL) -> dict[str, Any]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def test_a_kernel_is_compiled_once(tmp_path: Path) -> None:
    assert run_with_cache(tmp_path)["kept"] == 0
    assert run_with_cache(tmp_path)["kept"] == 1


def test_kernels_just_compiled_and_kernels_from_the_cache_give_the_same_bits(tmp_path: Path) -> None:
    # in another order too, since what one kernel brings into memory must not be what another runs
    there, back = (f"ORDER = {names}{SOME_ROUNDS}" for names in (["fedmf", "fedrec+"], ["fedrec+", "fedmf"]))
    compiled = run_with_cache(tmp_path, there)
    assert run_with_cache(tmp_path, there) == compiled
    assert run_with_cache(tmp_path, back) == compiled


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    started = [
        subprocess.Popen([sys.executable, "-c", ONE_KERNEL], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    kept = [json.loads(process.communicate()[0])["kept"] for process in started]
    assert sorted(kept) == [0, 1, 1]


def test_a_cache_that_nobody_can_write_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")  # a folder below a file: not even root can make it
    nowhere = tmp_path / "file" / "cache"
    code = f"""
from numba.core import caching
for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.get_cache_path = lambda self: {str(nowhere)!r}
{ONE_KERNEL}"""
    assert run_with_cache(nowhere, code) == {"means": [1.5, 1.5], "kept": 0}


def test_a_cache_that_becomes_unwritable_is_no_error(tmp_path: Path) -> None:
    code = f"""
import shutil
from fedrecplus.fast import compiling
shutil.rmtree({str(tmp_path)!r})
open({str(tmp_path)!r}, "w").close()
{ONE_KERNEL}"""
    assert run_with_cache(tmp_path, code)["kept"] == 0


def test_a_cut_or_stale_index_is_no_error_and_is_replaced(tmp_path: Path) -> None:
    run_with_cache(tmp_path)
    indices = list(tmp_path.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(index.read_bytes()[:-7])
    assert run_with_cache(tmp_path)["kept"] == 0
    assert run_with_cache(tmp_path)["kept"] == 1


def test_a_change_in_any_file_of_the_engine_compiles_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    def doubled(number: int) -> int:
        return 2 * number

    compiling.kernel(doubled)(4)
    again = compiling.kernel(doubled)
    again(4)
    assert sum(again.stats.cache_hits.values()) == 1  # type: ignore[attr-defined]
    monkeypatch.setattr(compiling, "_STAMP", "another file is different")
    changed = compiling.kernel(doubled)
    changed(4)
    assert sum(changed.stats.cache_hits.values()) == 0  # type: ignore[attr-defined]
