"""``python -m benchmarks.one_size CLIENTS``: build, and run a few rounds; prints seconds and peak memory."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.rounds import MF, seconds_per_round, settings
from fedrecplus import data
from fedrecplus.engines import prepare

ROUNDS = 2


def main(clients: int) -> None:
    data.load("synthetic:clients=10")  # compiles
    started = time.perf_counter()
    ratings = data.load(f"synthetic:clients={clients},items=4000,ratings_per_client=50")
    built, build = time.perf_counter() - started, peak()
    config = settings("fedrec+", *MF, "pseudo_items.size_classes=false", "encoder.rule=content")
    problem = prepare(ratings, config)
    taken = seconds_per_round(problem, "fast", ROUNDS, warm_up=1)
    figures = {
        "clients": clients,
        "ratings": len(ratings),
        "pseudo items": int(problem.pseudo_indptr[-1]),
        "build s": built,
        "build GB": build,
        "s per round": min(taken),
        "peak GB": peak(),
    }
    print(json.dumps(figures))


def peak() -> float:
    """The most memory this process ever held, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e9


if __name__ == "__main__":
    main(int(sys.argv[1]))
