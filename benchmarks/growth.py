"""Time and memory per round on made-up data, from 10⁴ to 10⁶ clients with 50 ratings each and ρ=1."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.line import Line

SIZES = (10_000, 100_000, 1_000_000)


def measure() -> list[Line]:
    """A line per size, each in its own process, and the exponents of the growth: one is linear."""
    sizes = [_one_size(size) for size in SIZES]
    lines = [
        Line(f"peak memory, {size['clients']:,} clients", size["peak GB"], "GB", "≤ 8", _without_clients(size))
        for size in sizes
    ]
    for what in ("s per round", "peak GB", "build s"):
        clients, values = [np.log([size[name] for size in sizes]) for name in ("clients", what)]
        slopes = np.diff(values) / np.diff(clients)
        parts = {f"{SIZES[n]:,} to {SIZES[n + 1]:,}": float(slope) for n, slope in enumerate(slopes)}
        lines.append(Line(f"exponent of growth, {what}", float(slopes[-1]), "", "≤ 1.1", parts))
    return lines


def _one_size(clients: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.one_size", str(clients)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _without_clients(size: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in size.items() if name not in ("clients", "peak GB")}
