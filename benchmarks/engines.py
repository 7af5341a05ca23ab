"""Rounds on ML-100K: the fast engine over the reference, and client-rounds a second."""

from __future__ import annotations

from benchmarks.line import Line
from benchmarks.rounds import MF, fold, least_and_median, seconds_per_round, settings
from fedrecplus.engines import prepare


def measure() -> list[Line]:
    """How many rounds of the fast engine fit into one of the reference: steps with K=5 and d=20, and as shipped."""
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


def client_rounds() -> list[Line]:
    """With FedRec's hybrid filling, once predictions are filled in, with the paper's settings, and with our presets."""
    return [
        _clients("fedrec-hf", "≥ 250,000", 200, "virtual_ratings.predict_after=0"),
        _clients("fedrec+paper", "", 10),
        _clients("fedmf", "", 50),
        _clients("fedrec+", "", 50),
    ]


def _clients(name: str, goal: str, rounds: int, *changes: str) -> Line:
    problem = prepare(fold()[0], settings(name, *changes, "server.cooldown=0"))
    taken = least_and_median(seconds_per_round(problem, "fast", rounds))
    clients = len(problem.cohort(0))
    parts = {"ms per round": taken["least"], "by the median": 1e3 * clients / taken["median"]}
    return Line(f"client-rounds per second, {name}", 1e3 * clients / taken["least"], "1/s", goal, parts)
