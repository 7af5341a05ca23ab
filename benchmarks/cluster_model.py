"""``python -m benchmarks.cluster_model RUNS``: what more machines would do, fitted to runs on one.

RUNS is a file with a line of JSON per run of ``cluster_size``, which ``python -m benchmarks cluster`` leaves as
``runs/cluster.jsonl``. A round of N clients and I items in S shards on M machines of k cores takes

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.line import Line, as_table

FACTORS = 20
BYTES_PER_ROW = 4 * FACTORS + 8
"""of a shard's sums: a row in 32 bits, and its weight in 64"""
NETWORK = 1.25e9
"""bytes a second: ten gigabits, assumed"""
CORES = 16
"""of each machine, assumed"""
SHARDS_PER_MACHINE = 2
CLIENTS_PER_SHARD = 2_000_000
"""at most"""
SOME_CLIENTS = 20_000
"""where items grow"""
CASES = ((10**7, 10**4), (10**8, 10**4), (10**8, 10**6))
MACHINES = (1, 10, 100)


@dataclass(frozen=True)
class Costs:
    """The fitted costs, in seconds."""

    client: float
    """c"""
    row: float
    """z"""
    call: float
    """o"""
    byte: float
    """1/a"""
    misfit: float
    """the largest relative error of a run's processor time"""

    @classmethod
    def fitted(cls, runs: Sequence[dict[str, Any]]) -> Costs:
        """By least squares of relative errors, so that small runs count, too; none is negative."""
        work = [[one["clients"], one["shards"] * one["items"]] for one in runs]
        drivers = [one["driver processor s per round"] for one in runs]
        workers = [one["processor s per round"] - driver for one, driver in zip(runs, drivers, strict=True)]
        tables = [[one["shards"], one["shards"] * one["items"] * BYTES_PER_ROW] for one in runs]
        (client, row), (call, byte) = _least_squares(work, workers), _least_squares(tables, drivers)
        guesses = np.array(work) @ [client, row] + np.array(tables) @ [call, byte]
        misfit = np.abs(guesses / np.array([one["processor s per round"] for one in runs]) - 1.0).max()
        return cls(client, row, call, byte, float(misfit))

    def limits(self, shards: int) -> list[Line]:
        """Where growth stops being linear: below, calls cost more than clients; above, tables do."""
        few = shards * self.call / max(self.client, 1e-12)
        parts = {
            "µs a client": 1e6 * self.client,
            "ns a row and shard": 1e9 * self.row,
            "ms a shard's call": 1e3 * self.call,
            "GB/s added": 1e-9 / max(self.byte, 1e-15),
            "largest misfit": self.misfit,
        }
        rows = self.row + BYTES_PER_ROW * self.byte
        items = self.client * SOME_CLIENTS / max(shards * rows, 1e-15)
        below = f"growth with clients is linear from here on; below, calls of {shards} shards cost more than the work"
        above = f"growth with items is linear from here on; below, {SOME_CLIENTS:,} clients cost more than the tables"
        return [Line(below, few, "clients", "", parts), Line(above, items, "items")]

    def machines(self) -> list[Line]:
        """What so many machines would take, and what limits them. Nothing of this is run."""
        return [self._line(*case, machines) for case in CASES for machines in MACHINES]

    def _line(self, clients: int, items: int, machines: int) -> Line:
        shards = max(SHARDS_PER_MACHINE * machines, math.ceil(clients / CLIENTS_PER_SHARD))
        table = items * BYTES_PER_ROW
        parts = {
            "workers": (self.client * clients + self.row * items * shards) / (machines * CORES),
            "the driver's adding": shards * (self.call + table * self.byte),
            "the network": (shards + machines) * table / NETWORK if machines > 1 else 0.0,
        }
        whole = sum(parts.values())
        limit = max(parts, key=lambda name: parts[name])
        hours = {"hours for 10⁹ client-rounds": whole * 1e9 / clients / 3600}
        what = f"on paper: {clients:.0e} clients, {items:.0e} items, {machines} machines; limited by {limit}"
        return Line(what, whole, "s a round", "", {**parts, **hours})


def _least_squares(rows: list[list[float]], seconds: list[float]) -> tuple[float, float]:
    table, wanted = np.array(rows, dtype=float), np.array(seconds)
    scale = table.max(axis=0)
    found, _ = nnls(table / scale / wanted[:, None], np.ones(len(wanted)))
    return float(found[0] / scale[0]), float(found[1] / scale[1])


def main(file: Path) -> None:
    runs = [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
    costs = Costs.fitted(runs)
    print(as_table([*costs.limits(runs[0]["shards"]), *costs.machines()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
