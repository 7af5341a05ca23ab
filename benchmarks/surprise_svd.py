"""Time to the test RMSE that Surprise's SVD ends with, over Surprise's training time. Same fold, same machine.

``SURPRISE_PYTHON`` names the interpreter that has scikit-surprise, where it is not this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from fedrecplus.training.engines import engine_of

from benchmarks.line import Line
from benchmarks.rounds import fold, settings
from fedrecplus import simulation
from fedrecplus.data.ratings import Ratings
from fedrecplus.training.evaluation import Factors, Fallback, score

REPEATS = 5


def measure() -> list[Line]:
    """A line for FedMF and one for FedRec+."""
    svd = _surprise()
    if "error" in svd:
        return [Line("time to Surprise's RMSE over its training time", None, "×", "≤ 1, aim .2", svd)]
    return [_line(name, svd) for name in ("fedmf", "fedrec+")]


def _line(name: str, svd: dict[str, Any]) -> Line:
    runs = [_time_to(name, svd["rmse"]) for _ in range(REPEATS + 1)][1:]  # the first compiles
    ours = min(run["seconds"] for run in runs)
    parts = {
        "ours s": ours,
        "rounds": runs[0]["rounds"],
        "Surprise s": svd["seconds"],
        "RMSE": svd["rmse"],
        "by medians": float(np.median([run["seconds"] for run in runs])) / svd["median"],
    }
    return Line(f"time to Surprise's RMSE over its training time, {name}", ours / svd["seconds"], "×", "≤ 1", parts)


def _time_to(name: str, rmse: float) -> dict[str, Any]:
    """Seconds of all rounds up to the first whose test RMSE is as good, and of the refit after it.

    Looking at the test ratings after every round is not counted: Surprise doesn't look either.
    """
    training, test = fold()
    config, fallback = settings(name), Fallback.of(training)
    started = time.perf_counter()
    problem, engine = simulation.prepare(training, config), engine_of(config)
    state = engine.start(problem)
    seconds = time.perf_counter() - started
    while state.server.round < config.server.rounds:
        started = time.perf_counter()
        state, _ = engine.simulate_round(problem, state)
        seconds += time.perf_counter() - started
        started = time.perf_counter()
        U, V = engine.prediction_factors(problem, state), simulation.prediction_table(problem, state)
        factors = Factors(U, V, problem.mean)
        refit = time.perf_counter() - started
        if score(test, factors.predict, fallback).rmse <= rmse:
            return {"seconds": seconds + refit, "rounds": state.server.round}
    return {"seconds": float("inf"), "rounds": state.server.round}


def _surprise() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "train.csv", Path(folder) / "test.csv"]
        for ratings, path in zip(fold(), paths, strict=True):
            _write(ratings, path)
        python = os.environ.get("SURPRISE_PYTHON", sys.executable)
        script = Path(__file__).with_name("surprise_fit.py")
        command = [python, str(script), *map(str, paths), str(REPEATS)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _write(ratings: Ratings, path: Path) -> None:
    columns = (ratings.client_of_rating, ratings.items, ratings.values)
    np.savetxt(path, np.column_stack(columns), fmt=["%d", "%d", "%.1f"], delimiter=",")
