"""Seconds to compile every kernel, in a new process with an empty cache, over those with a filled one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.line import Line


def measure() -> list[Line]:
    """The difference between a first and a second process that use every kernel."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = _every_kernel(folder), _every_kernel(folder)
    parts = {
        "first use, wall s": first["wall"],
        "with a filled cache, wall s": second["wall"],
        "first, processor s": first["processor"],
        "filled, processor s": second["processor"],
        "kernels": first["kernels"],
    }
    seconds = first["processor"] - second["processor"]
    return [Line("compiling all kernels at first use", seconds, "s", "≤ 12", parts)]


def _every_kernel(cache: str) -> dict[str, Any]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-m", "benchmarks.every_kernel"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
