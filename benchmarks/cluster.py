"""What a cluster costs over the bare engine, how its cost grows with clients and items, and what that comes to.

All of it on one machine, whose cores two workers share. Sizes beyond 10⁶ clients take half an hour and more, most of it
to make ratings up, and are measured only where ``FEDRECPLUS_BENCH_LARGE`` is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.line import Line

CLIENTS, LARGE = (10_000, 100_000, 1_000_000), (10_000_000,)
ITEMS = (1_000, 10_000, 100_000, 1_000_000)
FEW_CLIENTS = 100_000
ROUNDS = 4
BILLION = 1e9


def measure() -> list[Line]:
    """Overhead, growth, and hours for a billion client-rounds; each size in a process of its own."""
    sizes = [_run(clients, 4_000, beside=True) for clients in CLIENTS]
    whole = sizes[-1]
    if os.environ.get("FEDRECPLUS_BENCH_LARGE"):
        sizes += [_run(clients, 4_000) for clients in LARGE]
    by_items = [_run(FEW_CLIENTS, items) for items in ITEMS]
    lines = [_overhead(whole), *_growth("clients", sizes), *_growth("items", by_items)]
    for size in sizes[len(CLIENTS) - 1 :]:
        told = f"{size['clients']:,} clients"
        parts = {"s per round": size["s per round"], "cores": size["cores"]}
        lines.append(Line(f"hours for 10⁹ client-rounds on a cluster, {told}", hours(size), "h", "", parts))
        lines.append(Line(f"peak memory of a cluster, {told}", memory(size), "GB", "≤ 24 for 10⁷", _memories(size)))
    return lines


def hours(size: dict[str, Any]) -> float:
    """For a billion client-rounds, at the speed that was seen."""
    return float(size["s per round"] * BILLION / size["clients"] / 3600)


def memory(size: dict[str, Any]) -> float:
    """Of the driver, all workers and the object store, in GB; pages that they share are counted more than once."""
    return float(sum(_memories(size).values()))


def _memories(size: dict[str, Any]) -> dict[str, float]:
    return {name: size[name] for name in ("driver peak GB", "workers peak GB", "object store GB")}


def _overhead(size: dict[str, Any]) -> Line:
    """By the least rounds, and by the median of the ratios of rounds that followed each other."""
    over = np.array(size["rounds s"]) / np.array(size["bare rounds s"])
    parts = {
        "cluster s": size["s per round"],
        "bare s": size["bare s per round"],
        "by medians": float(np.median(over) - 1.0),
        "in workers, s": size["slowest worker s"],
        "by processor time": size["processor s per round"] / size["bare processor s per round"] - 1.0,
    }
    value = size["s per round"] / size["bare s per round"] - 1.0
    return Line(
        f"a cluster's time over the bare engine's, {size['clients']:,} clients, less 1", value, "", "≤ 0.1", parts
    )


def _growth(what: str, sizes: Sequence[dict[str, Any]]) -> list[Line]:
    """Seconds of a round at each size, and the exponents between sizes: one is linear."""
    seconds, counts = [np.array([float(size[name]) for size in sizes]) for name in ("s per round", what)]
    slopes = np.diff(np.log(seconds)) / np.diff(np.log(counts))
    parts = {f"{size[what]:,}": float(size["s per round"]) for size in sizes}
    exponents = ", ".join(f"{slope:.2f}" for slope in slopes)
    line = f"s per round on a cluster by {what}, exponents {exponents}"
    return [Line(line, float(seconds[-1]), "s", "", parts)]


def _run(clients: int, items: int, *, beside: bool = False) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.cluster_size", str(clients), str(items), str(ROUNDS)]
    done = subprocess.run([*command, *(["beside"] if beside else [])], capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
