"""``python -m benchmarks.cluster_model RUNS``: what more machines would do, fitted to runs on one.

RUNS is a file with a line of JSON per run of ``cluster_size``. A round of N clients and I items in S shards on M
machines of k cores takes

    T = c N / (M k) + z w I / k + S (o + b/a) + (S + M) b / B,   w = S / M shards a machine, b = bytes of a table

with c seconds of one core for a client; z for each row of a shard's tables, which are cleared and added up whoever has
ratings there; o seconds for a shard's call; a bytes a second at which the driver adds tables; and B, the network, which
one machine can't show and is assumed. c and z are fitted to the workers' processor time, o and 1/a to the driver's:
the clock depends on who else is on the machine.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from fedrecplus.markdown import markdown_table

FACTORS = 20
BYTES_PER_ROW = 4 * FACTORS + 8
"""of a shard's sums: a row in 32 bits, and its weight in 64"""
NETWORK = 1.25e9
"""bytes a second: ten gigabits, assumed"""
CORES = 16
"""of each machine, assumed"""
SHARDS_PER_MACHINE = 2
CASES = ((10**7, 10**4), (10**8, 10**4), (10**8, 10**6))


def main(file: Path) -> None:
    runs = [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
    client, row, call, byte = fit(runs)
    print(f"c = {1e6 * client:.3g} µs a client, z = {1e9 * row:.3g} ns a row and shard")
    print(f"o = {1e3 * call:.3g} ms a shard, a = {1e-9 / max(byte, 1e-15):.3g} GB/s")
    rows = [_row(*case, machines, client, row, call, byte) for case in CASES for machines in (1, 10, 100)]
    heads = ["clients", "items", "machines", "workers, s", "adding, s", "network, s", "round, s", "hours for 10⁹"]
    print(markdown_table(heads, rows))


def fit(runs: list[dict[str, Any]]) -> tuple[float, float, float, float]:
    """c, z, o and 1/a, none of them negative; each run counts by its own size, so that small ones count, too."""
    work = [[one["clients"], one["shards"] * one["items"]] for one in runs]
    drivers = [one["driver processor s per round"] for one in runs]
    workers = [one["processor s per round"] - driver for one, driver in zip(runs, drivers, strict=True)]
    tables = [[one["shards"], one["shards"] * one["items"] * BYTES_PER_ROW] for one in runs]
    return *_least_squares(work, workers), *_least_squares(tables, drivers)


def _least_squares(rows: list[list[float]], seconds: list[float]) -> tuple[float, float]:
    table, wanted = np.array(rows, dtype=float), np.array(seconds)
    scale = table.max(axis=0)
    found, _ = nnls(table / scale / wanted[:, None], np.ones(len(wanted)))
    return float(found[0] / scale[0]), float(found[1] / scale[1])


def _row(clients: int, items: int, machines: int, client: float, row: float, call: float, byte: float) -> list[str]:
    shards, table = SHARDS_PER_MACHINE * machines, items * BYTES_PER_ROW
    shards = max(shards, math.ceil(clients / 2_000_000))
    work = client * clients / (machines * CORES) + row * items * shards / machines / CORES
    adding, network = shards * (call + table * byte), (shards + machines) * table / NETWORK if machines > 1 else 0.0
    whole = work + adding + network
    hours = whole * 1e9 / clients / 3600
    figures = (f"{value:.3g}" for value in (work, adding, network, whole, hours))
    return [f"{clients:.0e}", f"{items:.0e}", str(machines), *figures]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
