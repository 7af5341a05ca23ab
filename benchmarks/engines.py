"""The fast engine over the reference, per round, on ML-100K: gradient steps, K=5 and d=20, and presets as shipped."""

from __future__ import annotations

from benchmarks.line import Line
from benchmarks.rounds import MF, fold, least_and_median, seconds_per_round, settings
from fedrecplus.engines import prepare


def measure() -> list[Line]:
    """How many rounds of the fast engine fit into one of the reference."""
    names = ("fedmf", "fedrec+")
    by_steps = [_line(f"{name} by mf, K=5, d=20", name, "≥ 50", *MF) for name in names]
    return by_steps + [_line(f"{name} as shipped", name, "") for name in names]


def _line(told: str, name: str, goal: str, *changes: str) -> Line:
    problem = prepare(fold()[0], settings(name, *changes, "server.cooldown=0"))
    quick = least_and_median(seconds_per_round(problem, "fast", rounds=200 if changes else 50))
    slow = least_and_median(seconds_per_round(problem, "reference", rounds=5 if changes else 2, warm_up=1))
    parts = {
        "fast ms": quick["least"],
        "reference ms": slow["least"],
        "by medians": slow["median"] / quick["median"],
    }
    return Line(f"reference over fast engine, {told}", slow["least"] / quick["least"], "×", goal, parts)
