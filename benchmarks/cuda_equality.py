"""The CUDA engine beside the reference, beside 64 bits, and beside the fast engine and Surprise."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cuda_data import read
from benchmarks.line import Line, as_table
from benchmarks.surprise_svd import surprise, time_to
from fedrecplus.config import Config, assign, preset, presets
from fedrecplus.data import Ratings, split
from fedrecplus.engines import prepare
from fedrecplus.testing.example import small_ratings, state_after
from fedrecplus.training import train

SMALL_COHORT = ("channel.least_cohort=5", "channel.fewest_contributors=1")
SEEDS = 5
CLOSE = "≤ .0005"
_LARGER = ("fedmf", "fedrec+", "fedrec+secure")
"""presets that are trained on further sets, too"""
_WARM_UP = 12
"""rounds in which all kernels of a preset are compiled: `fedrec-hf` begins to predict after ten"""


def federated() -> list[str]:
    """The presets that have rounds."""
    return [name for name in presets() if preset(name).engine != "central"]


def equality(_: argparse.Namespace) -> list[Line]:
    """Each preset in 64 bits and fixed order: the greatest difference from the reference, after four rounds."""
    lines = []
    for name in federated():
        config = replace(preset(name), precision="float64", deterministic=True)
        if config.channel.rule == "secure":
            config = assign(config, SMALL_COHORT)
        problem = prepare(small_ratings(clients=60, items=90), config)
        states = [state_after(problem, 4, engine).arrays() for engine in ("reference", "cuda")]
        apart = [np.abs(states[0][key].astype(float) - states[1][key]).max(initial=0.0) for key in states[0]]
        lines.append(Line(f"largest difference from the reference, {name}", float(max(apart)), "", "≤ 1e-9"))
    return lines


def trainings(wanted: argparse.Namespace) -> list[Line]:
    """Whole trainings: RMSE of 32 bits on the card beside 64 bits on the processor, and seconds of either engine."""
    lines = []
    for source in wanted.data:
        training, test = split(read(source), 0)
        for name in federated() if source == wanted.data[0] else _LARGER:
            exact = _rmse(training, test, replace(preset(name), engine="fast", precision="float64"))
            runs = {engine: _trained(training, test, name, engine) for engine in ("cuda", "fast")}
            apart = {engine: run["rmse"] - exact for engine, run in runs.items()}
            parts = {f"{engine} s": run["seconds"] for engine, run in runs.items()}
            parts |= {"RMSE": runs["cuda"]["rmse"], "fast engine less 64 bits": apart["fast"]}
            what = f"RMSE on the card less that in 64 bits, {name}, {Path(source).stem}"
            lines.append(Line(what, apart["cuda"], "", CLOSE, parts))
            _show(lines[-1])
    return lines


def seeds(wanted: argparse.Namespace) -> list[Line]:
    """Each preset with several seeds, on the card in 32 and in 64 bits: the greatest difference of final RMSE."""
    training, test = split(read(wanted.data[0]), 0)
    lines = []
    for name in federated():
        config = replace(preset(name), engine="cuda")
        parts = {}
        for seed in range(SEEDS):
            narrow, wide = (
                _rmse(training, test, replace(config, seed=seed, precision=each)) for each in ("float32", "float64")
            )
            parts[f"seed {seed}"] = narrow - wide
        worst = max(abs(apart) for apart in parts.values())
        lines.append(Line(f"RMSE in 32 bits less that in 64, {SEEDS} seeds, {name}", worst, "", CLOSE, parts))
        _show(lines[-1])
    return lines


def beside_surprise(wanted: argparse.Namespace) -> list[Line]:
    """Surprise's SVD on the same folds and machine, and how long either engine takes to its RMSE."""
    lines = []
    for source in wanted.data:
        training, test = split(read(source), 0)
        told, svd = Path(source).stem, surprise(training, test, repeats=3)
        if "error" in svd:
            lines.append(Line(f"training time of Surprise's SVD, {told}", None, "s", "", svd))
            continue
        lines.append(Line(f"training time of Surprise's SVD, {told}", svd["median"], "s", "", {"RMSE": svd["rmse"]}))
        for name in ("fedmf", "fedrec+"):
            runs = {engine: _to_rmse(training, test, name, engine, svd["rmse"]) for engine in ("fast", "cuda")}
            parts = {f"{engine} s": run["seconds"] for engine, run in runs.items()}
            parts |= {"rounds": runs["cuda"]["rounds"], "Surprise s": svd["median"]}
            what = f"time to Surprise's RMSE over its training time, on the card, {name}, {told}"
            lines.append(Line(what, runs["cuda"]["seconds"] / svd["median"], "×", "", parts))
            _show(lines[-1])
    return lines


def _to_rmse(training: Ratings, test: Ratings, name: str, engine: str, rmse: float) -> dict[str, Any]:
    """The median of some runs, after one that compiles."""
    config = replace(preset(name), engine=engine)
    runs = [time_to(training, test, config, rmse) for _ in range(4)][1:]
    return {"seconds": float(np.median([run["seconds"] for run in runs])), "rounds": runs[0]["rounds"]}


def _rmse(training: Ratings, test: Ratings, config: Config) -> float:
    return float(train(training, test, _evaluated_once(config)).result["rmse"])


def _evaluated_once(config: Config) -> Config:
    return assign(config, [f"evaluation.every={config.server.rounds}"])


def _show(line: Line) -> None:
    """Each line as it is found: a machine may be taken back before the last."""
    print(as_table([line]).splitlines()[-1], file=sys.stderr, flush=True)


def _trained(training: Ratings, test: Ratings, name: str, engine: str) -> dict[str, float]:
    """In 32 bits, timed from ratings to recommender, after a few rounds that compile."""
    config = replace(preset(name), engine=engine, precision="float32")
    _rmse(training, test, assign(config, [f"server.rounds={min(_WARM_UP, config.server.rounds)}"]))
    began = time.perf_counter()
    rmse = _rmse(training, test, config)
    return {"rmse": rmse, "seconds": time.perf_counter() - began}
