"""Client-rounds per second with FedRec's hybrid-filling settings, with the paper's letter, and with our presets."""

from __future__ import annotations

from benchmarks.line import Line
from benchmarks.rounds import fold, least_and_median, seconds_per_round, settings
from fedrecplus.engines import prepare


def measure() -> list[Line]:
    """Rounds in which predictions are filled in (the first ten, with averages, would be quicker)."""
    return [
        _line("fedrec-hf", "≥ 250,000", 200, "virtual_ratings.predict_after=0"),
        _line("fedrec+paper", "", 10),
        _line("fedmf", "", 50),
        _line("fedrec+", "", 50),
    ]


def _line(name: str, goal: str, rounds: int, *changes: str) -> Line:
    problem = prepare(fold()[0], settings(name, *changes, "server.cooldown=0"))
    taken = least_and_median(seconds_per_round(problem, "fast", rounds))
    clients = len(problem.cohort(0))
    parts = {"ms per round": taken["least"], "by the median": 1e3 * clients / taken["median"]}
    return Line(f"client-rounds per second, {name}", 1e3 * clients / taken["least"], "1/s", goal, parts)
