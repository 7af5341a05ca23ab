"""What both engines cost by clients and by items, what a cluster adds to the bare engine, and what that comes to.

All of it on one machine, whose cores two workers share; five minutes on two idle cores. ``FEDRECPLUS_BENCH_CLIENTS``
and ``FEDRECPLUS_BENCH_ITEMS`` set the largest sizes (10⁶ both): 10⁷ clients take half an hour more, most of it to make
ratings up. Above ``BESIDE`` clients only the cluster runs: the bare engine holds all ratings in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster_model import SOME_CLIENTS, Costs
from benchmarks.line import Line

CLIENTS, ITEMS = (10_000, 100_000, 1_000_000, 10_000_000), (1_000, 10_000, 100_000, 1_000_000)
MOST_CLIENTS, MOST_ITEMS = "FEDRECPLUS_BENCH_CLIENTS", "FEDRECPLUS_BENCH_ITEMS"
SOME_ITEMS = 4_000
"""where clients grow"""
BESIDE = 1_000_000
ROUNDS, FEW_ROUNDS = 4, 2
"""few where only the cluster runs"""
BILLION = 1e9
RUNS = Path("runs/cluster.jsonl")
"""a line of JSON per size, for ``cluster_model``"""
ENGINES = {"ray": "", "fast": "bare "}
"""engine → what its figures begin with"""


def measure() -> list[Line]:
    """Overhead, growth, and hours for a billion client-rounds; each size in a process of its own."""
    most, most_items = int(os.environ.get(MOST_CLIENTS, 1_000_000)), int(os.environ.get(MOST_ITEMS, 1_000_000))
    by_clients = [_run(clients, SOME_ITEMS) for clients in CLIENTS if clients <= most]
    by_items = [_run(SOME_CLIENTS, items) for items in ITEMS if items <= most_items]
    RUNS.parent.mkdir(parents=True, exist_ok=True)
    RUNS.write_text("".join(f"{json.dumps(run)}\n" for run in [*by_clients, *by_items]))
    lines = [_overhead([run for run in by_clients if "bare s per round" in run][-1])]
    for engine in ENGINES:
        lines += [_growth(engine, "clients", by_clients), _growth(engine, "items", by_items)]
    costs = Costs.fitted([*by_clients, *by_items])
    lines += costs.limits(by_items[0]["shards"])
    lines += [_hours(engine, by_clients) for engine in ENGINES]
    lines.append(
        Line(
            f"peak memory of a cluster, {by_clients[-1]['clients']:,} clients",
            sum(_memories(by_clients[-1]).values()),
            "GB",
            "≤ 24 for 10⁷",
            _memories(by_clients[-1]),
        )
    )
    return lines + costs.machines()


def _memories(run: dict[str, Any]) -> dict[str, float]:
    """Pages that processes share are counted more than once; up to 10⁶ clients the driver runs the bare engine, too."""
    return {name: run[name] for name in ("driver peak GB", "workers peak GB", "object store GB")}


def _overhead(run: dict[str, Any]) -> Line:
    """By processor time, which other programs on the machine change least; by the clock besides."""
    over = np.array(run["rounds s"]) / np.array(run["bare rounds s"])
    parts = {
        "cluster, processor s": run["processor s per round"],
        "of these the driver": run["driver processor s per round"],
        "bare, processor s": run["bare processor s per round"],
        "by the clock, least of either": run["s per round"] / run["bare s per round"] - 1.0,
        "by the clock, median of ratios": float(np.median(over) - 1.0),
        "load average": run["load average"],
    }
    value = run["processor s per round"] / run["bare processor s per round"] - 1.0
    what = f"a cluster's processor time over the bare engine's, {run['clients']:,} clients, less 1"
    return Line(what, value, "", "≤ 0.1", parts)


def _growth(engine: str, what: str, runs: Sequence[dict[str, Any]]) -> Line:
    """Processor seconds of a round at each size, and the exponents between sizes: one is linear."""
    name = f"{ENGINES[engine]}processor s per round"
    runs = [run for run in runs if name in run]
    seconds, counts = [np.array([float(run[key]) for run in runs]) for key in (name, what)]
    slopes = np.diff(np.log(seconds)) / np.diff(np.log(counts))
    parts = {f"{run[what]:,}": float(run[name]) for run in runs}
    exponents = ", ".join(f"{slope:.2f}" for slope in slopes)
    return Line(
        f"processor s of a round by {what}, {engine}, exponents {exponents}", float(seconds[-1]), "s", "", parts
    )


def _hours(engine: str, runs: Sequence[dict[str, Any]]) -> Line:
    """For a billion client-rounds at the largest size, at the speed that was seen by the clock."""
    name = f"{ENGINES[engine]}s per round"
    run = [one for one in runs if name in one][-1]
    hours = float(run[name]) * BILLION / run["clients"] / 3600
    parts = {"s per round": float(run[name]), "clients": run["clients"], "cores": run["cores"]}
    return Line(f"hours for 10⁹ client-rounds, {engine}", hours, "h", "", parts)


def _run(clients: int, items: int) -> dict[str, Any]:
    rounds, beside = (ROUNDS, ["beside"]) if clients <= BESIDE else (FEW_ROUNDS, [])
    command = [sys.executable, "-m", "benchmarks.cluster_size", str(clients), str(items), str(rounds)]
    print(f"cluster: {clients:,} clients, {items:,} items ...", file=sys.stderr, flush=True)
    done = subprocess.run([*command, *beside], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
