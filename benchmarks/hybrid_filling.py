"""Client-rounds per second with FedRec's hybrid-filling settings, and with the paper's letter."""

from __future__ import annotations

import numpy as np

from benchmarks.line import Line
from benchmarks.rounds import fold, least_and_median, seconds_per_round, settings
from fedrecplus import fast, simulation


def measure() -> list[Line]:
    """Rounds in which predictions are filled in (the first ten, with averages, would be quicker)."""
    return [
        _line("fedrec-hf", "≥ 250,000", 200, "virtual_ratings.predict_after=0"),
        _line("fedrec+paper", "", 10),
    ]


def _line(name: str, goal: str, rounds: int, *changes: str) -> Line:
    problem = simulation.prepare(fold()[0], settings(name, *changes))
    taken = least_and_median(seconds_per_round(fast.simulate_round, problem, np.float32, rounds))
    clients = len(problem.taking_part(0))
    parts = {"ms per round": taken["least"], "by the median": 1e3 * clients / taken["median"]}
    return Line(f"client-rounds per second, {name}", 1e3 * clients / taken["least"], "1/s", goal, parts)
