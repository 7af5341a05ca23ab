"""Kernels are compiled whatever the state of the cache on disk, and give the same bits from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.arrays import compiling

ROOT = Path(__file__).parents[2]
ONE_KERNEL = """
import json, warnings
warnings.simplefilter("error")
import numpy as np
from fedrecplus.engines.fast.rows import put_back
items = np.array([5, 2])
put_back(np.array([0]), np.array([0, 2]), np.array([[2, 5]]), items)
print(json.dumps({"items": items.tolist(), "kept": sum(put_back.stats.cache_hits.values())}))
"""
SOME_ROUNDS = """
import hashlib, json
from fedrecplus.config import preset
from fedrecplus.engines import engine_of, item_columns, prepare
from fedrecplus.testing import small_ratings
hashes = {}
for name in ORDER:
    problem = prepare(small_ratings(60, 80), preset(name))
    engine = engine_of(problem.config)
    state = engine.start(problem)
    for _ in range(3):
        state, _ = engine.round(problem, state)
    W = engine.user_weights(problem, state.private, item_columns(problem, state.server.V))
    hashes[name] = hashlib.sha256(state.server.V.tobytes() + state.private.U.tobytes() + W.tobytes()).hexdigest()
print(json.dumps(hashes))
"""


def start_with_cache(folder: Path, code: str = ONE_KERNEL) -> subprocess.Popen[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def run_with_cache(folder: Path, code: str = ONE_KERNEL) -> dict[str, Any]:
    process = start_with_cache(folder, code)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    figures: dict[str, Any] = json.loads(output)
    return figures


def test_processes_that_start_together_compile_once_and_a_cut_index_is_replaced(tmp_path: Path) -> None:
    started = [start_with_cache(tmp_path) for _ in range(2)]
    kept = [json.loads(process.communicate()[0])["kept"] for process in started]
    assert sorted(kept) == [0, 1]
    indices = list(tmp_path.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(index.read_bytes()[:-7])
    assert [run_with_cache(tmp_path)["kept"] for _ in range(2)] == [0, 1]


@pytest.mark.slow  # compiles all kernels of two presets anew
def test_kernels_just_compiled_and_kernels_from_the_cache_give_the_same_bits(tmp_path: Path) -> None:
    # in another order too, since what one kernel brings into memory must not be what another runs
    there, back = (f"ORDER = {names}{SOME_ROUNDS}" for names in (["fedrec", "fedrec+"], ["fedrec+", "fedrec"]))
    compiled = run_with_cache(tmp_path, there)
    assert run_with_cache(tmp_path, there) == compiled
    assert run_with_cache(tmp_path, back) == compiled


def test_a_cache_that_nobody_can_write_or_that_becomes_unwritable_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")  # a folder below a file: not even root can make it
    nowhere, gone = tmp_path / "file" / "cache", tmp_path / "gone"
    without = f"""
from numba.core import caching
for locator in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.get_cache_path = lambda self: {str(nowhere)!r}
{ONE_KERNEL}"""
    removed = f"""
import shutil
from fedrecplus.engines.fast import rows
shutil.rmtree({str(gone)!r})
open({str(gone)!r}, "w").close()
{ONE_KERNEL}"""
    for folder, code in ((nowhere, without), (gone, removed)):
        assert run_with_cache(folder, code) == {"items": [2, 5], "kept": 0}


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
