"""The fast engine over the reference, per round: ML-100K, K=5, d=20."""

from __future__ import annotations

import numpy as np

from benchmarks.line import Line
from benchmarks.rounds import fold, least_and_median, seconds_per_round, settings
from fedrecplus import fast, simulation

SAME = ("client.local_epochs=5", "model.factors=20")


def measure() -> list[Line]:
    """How many rounds of the fast engine fit into one of the reference."""
    return [_line(name) for name in ("fedmf", "fedrec+")]


def _line(name: str) -> Line:
    problem = simulation.prepare(fold()[0], settings(name, *SAME))
    quick = least_and_median(seconds_per_round(fast.simulate_round, problem, np.float32, rounds=200))
    slow = least_and_median(seconds_per_round(simulation.simulate_round, problem, np.float64, rounds=5, warm_up=1))
    parts = {
        "fast ms": quick["least"],
        "reference ms": slow["least"],
        "by medians": slow["median"] / quick["median"],
    }
    return Line(f"reference over fast engine, {name}", slow["least"] / quick["least"], "×", "≥ 50", parts)
