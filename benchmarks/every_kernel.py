"""``python -m benchmarks.every_kernel``: use every kernel of the fast engine once; prints the seconds it took."""

from __future__ import annotations

import importlib
import json
import pkgutil
import time
from types import ModuleType
from typing import Any

from numba.core.dispatcher import Dispatcher

from fedrecplus import data
from fedrecplus.arrays.compiling import Inner
from fedrecplus.config import Config, assign
from fedrecplus.engines import engine_of, fast, item_columns, prepare
from fedrecplus.parts import KINDS, built_in


def modules() -> list[ModuleType]:
    """All modules of the fast engine, and the primitives' kernels."""
    found = pkgutil.walk_packages(fast.__path__, f"{fast.__name__}.")
    return [importlib.import_module(name) for name in ("fedrecplus.arrays.kernels", *(module.name for module in found))]


def kernels() -> dict[str, Any]:
    """Every kernel by its name; what is only ever compiled into others is none."""
    named = [(name, value) for module in modules() for name, value in vars(module).items()]
    found = {name: value for name, value in named if isinstance(value, Dispatcher) and not isinstance(value, Inner)}
    assert len(found) == len({id(value) for value in found.values()}), "two kernels have the same name"
    return found


def main() -> None:
    ratings = data.load("synthetic:clients=60,items=80,ratings_per_client=10")
    started, used = time.perf_counter(), time.process_time()
    for changes in _all_settings():
        _run(ratings, assign(Config(), [*changes, "simulation_only=true"]))
    taken = {"wall": time.perf_counter() - started, "processor": time.process_time() - used}
    there = kernels()
    idle = sorted(name for name, kernel in there.items() if not kernel.signatures)
    print(json.dumps({**taken, "kernels": len(there), "never used": idle}))


def _run(ratings: Any, config: Config) -> None:
    problem, engine = prepare(ratings, config), engine_of(config)
    state, _ = engine.round(problem, engine.start(problem))
    X = item_columns(problem, state.server.V)
    engine.list_weights(problem, engine.user_weights(problem, state.private, X), X)


def _all_settings() -> list[list[str]]:
    drawn = ["pseudo_items.rule=random"]
    lines = [
        [*(drawn if kind != "pseudo_items" else []), f"{kind}.rule={rule}"]
        for kind in ("model", "pseudo_items", "virtual_ratings", "aggregation", "channel")
        for rule in built_in(KINDS[kind])
    ]
    lines += [[*drawn, f"model.rule={rule}", "virtual_ratings.rule=predicted"] for rule in built_in(KINDS["model"])]
    return [*lines, [*drawn, "virtual_ratings.rule=hybrid", "virtual_ratings.predict_after=0"]]


if __name__ == "__main__":
    main()
