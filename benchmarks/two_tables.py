"""A round that learns from ratings and choices beside one that learns from ratings alone, with many clients.

``python -m benchmarks two-tables``; TWO_TABLES_CLIENTS=1000000 for the size that the goal is about.
"""

from __future__ import annotations

import os
import time

from benchmarks.line import Line
from benchmarks.rounds import peak, settings
from fedrecplus import data
from fedrecplus.config import Config
from fedrecplus.engines import Problem, engine_of, prepare

ITEMS, RATINGS = 10_000, 50
CLIENTS = int(os.environ.get("TWO_TABLES_CLIENTS", "100000"))


def measure() -> list[Line]:
    """The ratio of one round's processor time, both models under sums, on the same data."""
    data.load("synthetic:clients=10")  # compiles
    small = data.load("synthetic:clients=100,items=200")
    ratings = data.load(f"synthetic:clients={CLIENTS},items={ITEMS},ratings_per_client={RATINGS}")
    seconds = {}
    for name, config in _configs().items():
        _round(prepare(small, config))
        seconds[name] = _round(prepare(ratings, config))
    parts = {
        **{f"{name} s": value for name, value in seconds.items()},
        "ratings": len(ratings),
        "peak GB": peak(),
    }
    ratio = seconds["fedrec+secure"] / seconds["fedmf"]
    return [Line(f"a round of both tables, {CLIENTS:,} clients, {ITEMS:,} items", ratio, "× fedmf's", "≤ 3", parts)]


def _configs() -> dict[str, Config]:
    return {"fedmf": settings("fedmf"), "fedrec+secure": settings("fedrec+secure")}


def _round(problem: Problem) -> float:
    """Processor seconds of a first round: others on the machine don't count."""
    runs = engine_of(problem.config)
    state = runs.start(problem)
    started = time.process_time()
    runs.round(problem, state)
    return time.process_time() - started
