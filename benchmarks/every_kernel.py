"""``python -m benchmarks.every_kernel``: use every kernel of the fast engine once; prints the seconds it took."""

from __future__ import annotations

import json
import time
from types import ModuleType

import numpy as np
from fedrecplus.fast import (
    columns,
    filling,
    grouping,
    local_training,
    neighbours,
    prediction,
    robust,
    selection,
    traffic,
)
from numba.core.dispatcher import Dispatcher

from fedrecplus import data, fast, simulation
from fedrecplus.config import Config, assign
from fedrecplus.parts import choices

MODULES = (columns, filling, grouping, local_training, prediction, robust, selection, traffic)


def main() -> None:
    ratings = data.load("synthetic:clients=60,items=80,ratings_per_client=10")
    started, used = time.perf_counter(), time.process_time()
    for changes in _all_settings():
        problem = simulation.prepare(ratings, assign(Config(), changes))
        state, _ = fast.simulate_round(problem, simulation.start(problem, np.float32))
        fast.prediction_factors(problem, state)
    neighbours.LARGEST_TABLE = 1  # as if there were too many items for a table
    problem = simulation.prepare(ratings, assign(Config(), ["pseudo_items.rule=similar"]))
    fast.simulate_round(problem, simulation.start(problem, np.float32))
    taken = {"wall": time.perf_counter() - started, "processor": time.process_time() - used}
    kernels = {name for module in MODULES for name in _kernels(module)}
    idle = {name for module in MODULES for name in _kernels(module) if not getattr(module, name).signatures}
    print(json.dumps({**taken, "kernels": len(kernels), "never used": sorted(idle)}))


def _all_settings() -> list[list[str]]:
    base = ["prediction.factors=refit", "virtual_ratings.predict_after=0"]
    lines = [[*base, "pseudo_items.rule=random", f"virtual_ratings.rule={rule}"] for rule in choices("virtual_ratings")]
    lines += [[*base, f"pseudo_items.rule={rule}"] for rule in choices("pseudo_items")]
    lines += [[*base, f"aggregation.rule={rule}"] for rule in choices("aggregation")]
    return [*lines, ["pseudo_items.rule=random", "aggregation.denoising=0.25"]]


def _kernels(module: ModuleType) -> list[str]:
    compiled = [(name, value) for name, value in vars(module).items() if isinstance(value, Dispatcher)]
    return [name for name, value in compiled if value.targetoptions.get("inline") != "always"]  # no section of another


if __name__ == "__main__":
    main()
