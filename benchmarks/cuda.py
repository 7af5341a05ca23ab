"""``python -m benchmarks.cuda``: the CUDA engine on this machine's card: equality, precision, speed, and size.

The output is kept in ``benchmarks/results`` with date, card and commit. ``--data`` names sets for whole trainings.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.cuda_data import made, read
from benchmarks.line import Line, as_table
from fedrecplus import provenance
from fedrecplus.config import Config, assign, preset, presets
from fedrecplus.data import Ratings, split
from fedrecplus.engines import Problem, engine_of, item_columns, message_of, prepare
from fedrecplus.engines.cuda.model import mf
from fedrecplus.engines.cuda.ratings import CardRatings, no_pseudo_rows
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.fast.engine import weighing_of
from fedrecplus.errors import EngineWarning
from fedrecplus.testing.example import small_ratings
from fedrecplus.training import train
from fedrecplus.training.evaluation import Fallback, Predictor, score

RESULTS = Path(__file__).with_name("results")
SMALL_COHORT = ("channel.least_cohort=5", "channel.fewest_contributors=1")
STEPS = ("model.factors=32", "model.local_epochs=5", "model.learning_rate=0.02", "model.init=uniform")
WEIGHTS = {"uniform": (), "wasserstein": ("aggregation.rule=wasserstein", "aggregation.temperature=0.33")}


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
        states = [_after(problem, engine, 4).arrays() for engine in ("reference", "cuda")]
        apart = [np.abs(states[0][key].astype(float) - states[1][key]).max(initial=0.0) for key in states[0]]
        lines.append(Line(f"largest difference from the reference, {name}", float(max(apart)), "", "≤ 1e-9"))
    return lines


def _after(problem: Problem, engine: str, rounds: int) -> Any:
    runs = engine_of(replace(problem.config, engine=engine))
    state = runs.start(problem)
    for _ in range(rounds):
        state, _ = runs.round(problem, state)
    return state


def trainings(wanted: argparse.Namespace) -> list[Line]:
    """Whole trainings: RMSE of 32 bits on the card beside 64 bits on the processor, and seconds of either engine."""
    lines = []
    for source in wanted.data:
        training, test = split(read(source), 0)
        for name in federated() if source == wanted.data[0] else ["fedmf", "fedrec+", "fedrec+secure"]:
            runs = {key: _trained(training, test, name, *key) for key in _RUNS}
            apart = runs["cuda", "float32"]["rmse"] - runs["fast", "float64"]["rmse"]
            parts = {f"{engine} {precision} s": run["seconds"] for (engine, precision), run in runs.items()}
            parts["RMSE"] = runs["cuda", "float32"]["rmse"]
            parts["fast float32 less 64 bits"] = runs["fast", "float32"]["rmse"] - runs["fast", "float64"]["rmse"]
            what = f"RMSE on the card less that in 64 bits, {name}, {Path(source).stem}"
            lines.append(Line(what, apart, "", "≤ .0005", parts))
            print(as_table(lines[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    return lines


_RUNS = (("fast", "float64"), ("fast", "float32"), ("cuda", "float32"))


def _trained(training: Ratings, test: Ratings, name: str, engine: str, precision: str) -> dict[str, float]:
    config = replace(preset(name), engine=engine, precision=precision)
    config = assign(config, [f"evaluation.every={config.server.rounds}"])
    train(training, test, config)  # compiles
    began = time.perf_counter()
    run = train(training, test, config)
    return {"rmse": float(run.result["rmse"]), "seconds": time.perf_counter() - began}


def speed(wanted: argparse.Namespace) -> list[Line]:
    """Client-rounds a second: 10⁶ clients × 128 rows, d=32, K=5, 60,000 items; and what a copy would take."""
    clients, rows, items = wanted.clients, 128, 60_000
    copied = _copy_rate()
    lines = [Line("copy on the card, bytes read and written", copied / 1e12, "TB/s")]
    for skew, told in ((0.0, "all items alike"), (1.5, "popular items more often")):
        ratings, _ = made(clients, rows, items, skew)
        for weights, changes in WEIGHTS.items():
            problem = prepare(ratings, assign(Config(), [*STEPS, *changes]))
            kernel, moving = (_kernel_seconds(problem, epochs) for epochs in (5, 0))
            whole = {fixed: _round_seconds(problem, fixed) for fixed in (False, True)}
            read_bytes = clients * (rows * (32 * 4 + 3) + 2 * 33 * 4)
            added_bytes = clients * rows * 32 * 4
            parts = {
                "kernel ms": 1e3 * kernel,
                "without epochs ms": 1e3 * moving,
                "read once at a copy's rate ms": 1e3 * read_bytes / copied,
                "share of a copy's rate": read_bytes / kernel / copied,
                "atomic additions GB": added_bytes / 1e9,
                "round ms": 1e3 * whole[False],
                "round in fixed order ms": 1e3 * whole[True],
            }
            goal = "≥ 100" if weights == "uniform" and not skew else ""
            what = f"client-rounds a second in the kernel, {weights}, {told}"
            lines.append(Line(what, clients / kernel / 1e6, "million", goal, parts))
    return lines


def _copy_rate() -> float:
    source = torch.randn(1 << 30, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / _median_seconds(lambda: target.copy_(source))


def _kernel_seconds(problem: Problem, epochs: int) -> float:
    """Training and adding up alone, without the way to the card and back."""
    engine = engine_of(replace(problem.config, engine="cuda"))
    state, _ = engine.round(problem, engine.start(problem))
    known = CardRatings.of(problem, np.float32)
    cohort = Cohort.of(problem.able, known.counts(pseudo=False))
    message = message_of(problem, state)
    how = weighing_of(problem.config, message)
    assert how is not None, "these rules have kernels"
    some = Round(problem, state.private, message, no_pseudo_rows(known), cohort, how)
    steps = mf.steps_of(problem, some.message)._replace(epochs=epochs)
    tables, sums = mf.tables_of(some), some.sums()

    def once() -> None:
        for each in cohort.classes:
            mf.train_at_once(each, some.rows, steps, *tables, sums)

    return _median_seconds(once)


def _round_seconds(problem: Problem, deterministic: bool) -> float:
    """A whole round, the server's half too."""
    engine = engine_of(replace(problem.config, engine="cuda", deterministic=deterministic))
    state, seconds = engine.start(problem), []
    for _ in range(6):
        began = time.perf_counter()
        state, _ = engine.round(problem, state)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[2:]))


def _median_seconds(work: Callable[[], Any], repeats: int = 20) -> float:
    for _ in range(3):
        work()
    taken = []
    for _ in range(repeats):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        work()
        ended.record()
        torch.cuda.synchronize()
        taken.append(began.elapsed_time(ended) / 1e3)
    return float(np.median(taken))


def size(wanted: argparse.Namespace) -> list[Line]:
    """10⁷ clients × 50 ratings × 10⁵ items on one card: 60 rounds, with evaluations on ratings that were held out."""
    clients, rounds, clock = 10 * wanted.clients, 60, time.perf_counter()
    training, test = made(clients, 50, 100_000, skew=1.0, held_out=wanted.clients)
    config = assign(Config(), [*STEPS[:1], "model.learning_rate=0.3", "model.regularisation=0.05", "engine=cuda"])
    problem, fallback = prepare(training, config), Fallback.of(training, config)
    engine = engine_of(config)
    state = engine.start(problem)
    prepared, in_rounds, in_evaluations, errors = time.perf_counter() - clock, 0.0, 0.0, {}
    torch.cuda.reset_peak_memory_stats()
    for number in range(1, rounds + 1):
        began = time.perf_counter()
        state, _ = engine.round(problem, state)
        in_rounds += time.perf_counter() - began
        if number % 10 == 0:
            began = time.perf_counter()
            assert np.isfinite(state.private.U).all(), "U is not finite"
            X = item_columns(problem, state.server.V)
            predictor = Predictor(engine.user_weights(problem, state.private, X), X)
            errors[f"RMSE after {number}"] = score(test, predictor.predict, fallback).rmse
            in_evaluations += time.perf_counter() - began
    parts = {
        "made and prepared s": prepared,
        "evaluations s": in_evaluations,
        "peak on the card GB": torch.cuda.max_memory_allocated() / 1e9,
        "peak on the host GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        **errors,
    }
    what = f"{rounds} rounds of {clients:,} clients × 50 ratings × 100,000 items"
    per_second = rounds * clients / in_rounds / 1e6
    return [Line(what, in_rounds, "s", "", {"million client-rounds a second": per_second, **parts})]


MEASURES = {"equality": equality, "speed": speed, "size": size, "trainings": trainings}


def main() -> int:
    """Run the measures and keep their output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; none: all")
    parser.add_argument("--data", nargs="*", default=["ml-100k"], help="sets for whole trainings")
    parser.add_argument(
        "--clients", type=int, default=1_000_000, help="of the speed measure; size has ten times as many"
    )
    parser.add_argument("--commit", default=provenance.commit(), help="what is measured, where there is no repository")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the output")
    wanted = parser.parse_args()
    warnings.simplefilter("once", EngineWarning)
    lines: list[Line] = []
    for name in wanted.measures or MEASURES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = MEASURES[name](wanted)
        print(as_table(found), flush=True)
        lines += found
        _keep(lines, wanted)
    return 0


def _keep(lines: list[Line], wanted: argparse.Namespace) -> None:
    card, today = torch.cuda.get_device_name(), datetime.now(UTC).date().isoformat()
    facts = {"date": today, "card": card, "commit": wanted.commit, "torch": torch.__version__, "argv": sys.argv[1:]}
    stem = f"cuda-{card.lower().replace(' ', '-')}-{today}"
    wanted.out.mkdir(parents=True, exist_ok=True)
    report = {**facts, "lines": [line.as_dict() for line in lines]}
    (wanted.out / f"{stem}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    title = f"# {card}, {today}\n\nCommit {wanted.commit}, torch {torch.__version__}. `python -m benchmarks.cuda`\n\n"
    (wanted.out / f"{stem}.md").write_text(title + as_table(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
