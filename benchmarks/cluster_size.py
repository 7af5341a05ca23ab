"""``python -m benchmarks.cluster_size CLIENTS ITEMS ROUNDS [beside]``: rounds on shards, in seconds and memory.

With ``beside`` the bare engine runs the same rounds in turn with the cluster, so that both see the same load of others.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rounds import MF, peak, settings
from fedrecplus import data
from fedrecplus.config import assign
from fedrecplus.data.shards.manifest import ShardFolder, is_shard_folder
from fedrecplus.data.shards.read import read_all, sharded_ratings
from fedrecplus.data.shards.write import shard_synthetic
from fedrecplus.data.synthetic.truth import SyntheticOptions
from fedrecplus.engines import Engine, Problem, SimulationState, engine_of, prepare
from fedrecplus.engines.ray import RayEngine
from fedrecplus.workers import core_count

KEPT = "FEDRECPLUS_BENCH_SHARDS"
"""a folder to keep shards in, for runs of the same size; without it they are written anew and removed"""
CLIENTS_PER_SHARD = 200_000
LEAST_SHARDS = 8


class Timed:
    """An engine, its state, and what its rounds took."""

    def __init__(self, engine: Engine, problem: Problem) -> None:
        self.engine, self.problem = engine, problem
        self.state: SimulationState = engine.start(problem)
        self.seconds: list[float] = []
        self.processor: list[float] = []
        """seconds of this process's processors"""
        self.of_workers: list[dict[str, float]] = []
        """seconds by the clock"""
        self.worker_processor: list[float] = []
        """seconds of all workers' processors"""

    def round(self) -> None:
        """One round more. Of workers it counts what they use in it: they idle while others run, which is not free."""
        before = self._used_by_workers()
        began, used = time.perf_counter(), time.process_time()
        self.state, report = self.engine.round(self.problem, self.state)
        self.seconds.append(time.perf_counter() - began)
        self.processor.append(time.process_time() - used)
        self.worker_processor.append(self._used_by_workers() - before)
        self.of_workers.append(dict(report.seconds))

    def _used_by_workers(self) -> float:
        if not isinstance(self.engine, RayEngine):
            return 0.0
        return float(sum(one["processor seconds"] for one in self.engine.cluster_of(self.problem).statuses()))


def main(clients: int, items: int, rounds: int, beside: bool) -> None:
    data.load("synthetic:clients=10")  # compiles
    place = Path(os.environ.get(KEPT) or tempfile.mkdtemp(prefix="fedrecplus-bench-"))
    try:
        print(json.dumps(measure(place / f"{clients}x{items}", clients, items, rounds, beside)))
    finally:
        if KEPT not in os.environ:
            shutil.rmtree(place)


def measure(path: Path, clients: int, items: int, rounds: int, beside: bool) -> dict[str, Any]:
    began = time.perf_counter()
    if not is_shard_folder(path):
        options = SyntheticOptions.parse(f"clients={clients},items={items},ratings_per_client=50")
        shard_synthetic(options, path, max(LEAST_SHARDS, clients // CLIENTS_PER_SHARD))
    written, folder = time.perf_counter() - began, ShardFolder.read(path)
    config = assign(settings("fedmf", *MF), ["engine=ray"])
    engine, problem = engine_of(config), prepare(sharded_ratings(folder, None), config)
    assert isinstance(engine, RayEngine)
    cluster, bare = Timed(engine, problem), None
    if beside:
        alone = assign(config, ["engine=fast"])
        bare = Timed(engine_of(alone), prepare(read_all(folder), alone))
    workers = engine.cluster_of(problem)
    cluster.round()  # reads shards and compiles
    if bare is not None:
        bare.round()
    for _ in range(rounds):
        cluster.round()
        if bare is not None:
            bare.round()
    statuses, drivers = workers.statuses(), np.array(cluster.processor[1:])
    found = {
        "clients": clients,
        "items": items,
        "ratings": folder.ratings,
        "shards": len(folder.shards),
        "workers": workers.workers,
        "cores": core_count(),
        "writing shards s": written,
        "first round s": cluster.seconds[0],
        "s per round": min(cluster.seconds[1:]),
        "rounds s": cluster.seconds[1:],
        "slowest worker s": min(max(one.values()) for one in cluster.of_workers[1:]),
        "workers together s": min(sum(one.values()) for one in cluster.of_workers[1:]),
        "processor s per round": float(np.median(drivers + cluster.worker_processor[1:])),
        "driver processor s per round": float(np.median(drivers)),
        "load average": os.getloadavg()[0],
        "driver peak GB": peak(),
        "workers peak GB": sum(one["peak GB"] for one in statuses),
        "object store GB": _object_store(workers.ray),
        "files GB": sum(file.stat().st_size for file in path.iterdir()) / 1e9,
    }
    if bare is not None:
        found["bare s per round"], found["bare rounds s"] = min(bare.seconds[1:]), bare.seconds[1:]
        found["bare processor s per round"] = float(np.median(bare.processor[1:]))
    return found


def _object_store(ray: Any) -> float:
    """What Ray's object store holds now, in GB."""
    whole, free = (
        each.get("object_store_memory", 0.0) for each in (ray.cluster_resources(), ray.available_resources())
    )
    return float(whole - free) / 1e9


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "beside" in sys.argv)
