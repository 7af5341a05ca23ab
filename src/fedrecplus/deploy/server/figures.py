"""A deployed run in figures, from its journal: for metrics, the operator's page and `server status`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fedrecplus.deploy.server.stored_run import StoredRun

_RECENT = 20


@dataclass(frozen=True)
class RunFigures:
    """What a journal adds up to."""

    round: int = 0
    seconds: float = 0.0
    bytes_up: int = 0
    uploads: int = 0
    dropouts: int = 0
    scaled: int = 0
    odd_items: int = 0
    cohort: int = 0
    """nodes that answered in the last round"""
    last_seconds: float = 0.0
    rmse: float | None = None
    refused: dict[str, int] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()
    slowest: tuple[tuple[str, float], ...] = ()
    """nodes and their mean seconds over recent rounds, slowest first"""
    at: float = 0.0
    """when the last round closed"""
    phase: str = ""
    progress: dict[str, Any] = field(default_factory=dict)


def figures_of(run: StoredRun, strikes: int = 3) -> RunFigures:
    """The figures of a run; zeros where no round has closed."""
    lines, progress, phase = run.lines(), run.progress(), run.phase
    if not lines:
        return RunFigures(phase=phase, progress=progress)
    last, times = lines[-1], dict[str, list[float]]()
    for line in lines[-_RECENT:]:
        for node, seconds in line["nodes"].items():
            times.setdefault(node, []).append(float(seconds))
    slow = sorted(((node, sum(took) / len(took)) for node, took in times.items()), key=lambda pair: -pair[1])
    refusals = last.get("refusals", {})
    return RunFigures(
        round=int(last["round"]),
        seconds=sum(line["seconds"] for line in lines),
        bytes_up=sum(line["bytes_up"] for line in lines),
        uploads=sum(line["uploads"] for line in lines),
        dropouts=sum(len(line["lost"]) + len(line["silent"]) for line in lines),
        scaled=sum(len(line.get("scaled", ())) for line in lines),
        odd_items=sum(len(line.get("odd_items", ())) for line in lines),
        cohort=len(last["nodes"]),
        last_seconds=float(last["seconds"]),
        rmse=last["rmse"],
        refused=dict(Counter(refusals.get("refused", {}))),
        set_aside=tuple(node for node, count in refusals.get("strikes", {}).items() if count >= strikes),
        slowest=tuple(slow[:10]),
        at=float(last.get("at", 0.0)),
        phase=phase,
        progress=progress,
    )
