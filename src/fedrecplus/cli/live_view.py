"""A deployed run as it goes: a table in a terminal, a line per round elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from rich.live import Live
from rich.table import Table

from fedrecplus.cli.display import plain_console
from fedrecplus.deploy.operate import Show

_SHOWN = 12
_BETWEEN = 10.0
"""seconds between two words on where a run is, where there is no terminal"""
_PAUSED = "node-paused"
_HEADINGS = ("round", "clients", "nodes", "paused", "dropouts", "refused", "loss", "kB up", "seconds", "slowest node")


@contextlib.contextmanager
def show_rounds(rounds: int) -> Iterator[Show]:
    """The function to call with a run's progress and journal."""
    console = plain_console(stderr=True)
    shown, said, when = 0, "", 0.0

    def in_lines(progress: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        nonlocal shown, said, when
        headline = _headline(progress, rounds)
        if headline != said and (time.monotonic() - when > _BETWEEN or not said):
            console.print(headline, soft_wrap=True)
            said, when = headline, time.monotonic()
        for line in lines[shown:]:
            facts = zip(_HEADINGS, _cells(line, rounds), strict=True)
            text = ", ".join(f"{heading} {cell}" for heading, cell in facts if cell)
            console.print(text, soft_wrap=True)
        shown = max(shown, len(lines))

    if not console.is_terminal:
        yield in_lines
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield lambda progress, lines: live.update(_table(progress, lines, rounds))


def _table(progress: dict[str, Any], lines: list[dict[str, Any]], rounds: int) -> Table:
    table = Table(title=_headline(progress, rounds), title_justify="left", box=None, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines[-_SHOWN:]:
        table.add_row(*_cells(line, rounds))
    return table


def _headline(progress: dict[str, Any], rounds: int) -> str:
    phase = progress.get("phase")
    if phase == "waiting":
        return f"waiting for nodes: {progress['nodes']} of {progress['wanted']} are here"
    if phase == "round":
        answered = f"{progress['answered']} of {progress['asked']} nodes have answered"
        stage = f", {progress['stage']}" if "stage" in progress else ""
        return f"round {progress['round'] + 1} of {rounds}{stage}: {answered}"
    return "starting" if phase is None else str(phase)


def _cells(line: dict[str, Any], rounds: int) -> list[str]:
    """One round: who came, who didn't, how well it fits, what it weighed, and who kept it waiting."""
    paused = sum(why == _PAUSED for why in line["lost"].values())
    slowest = max(line["nodes"].items(), key=lambda pair: float(pair[1]), default=("", 0.0))
    return [
        f"{line['round']}/{rounds}",
        str(line["uploads"]),
        str(len(line["nodes"])),
        str(paused or ""),
        str(len(line["lost"]) + len(line["silent"]) - paused),
        str(sum(line["refusals"]["refused"].values())),
        "" if line["rmse"] is None else f"{line['rmse']:.4f}",
        f"{line['bytes_up'] / 1000:.1f}",
        f"{line['seconds']:.1f}",
        f"…{slowest[0][-6:]} {slowest[1]:.1f} s" if slowest[0] else "",
    ]
